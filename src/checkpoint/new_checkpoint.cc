#include "checkpoint/new_checkpoint.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "wire/placement.h"

namespace edl::checkpoint {

namespace fs = std::filesystem;

std::string PartName(job::LaneInJob lane, size_t lanes, job::PsIncarnation incarnation) {
  return fmt::format("part-{:04}-of-{:04}-{:016x}", lane.value(), lanes, incarnation.value());
}

NewCheckpoint::NewCheckpoint(fs::path folder, Manifest manifest)
    : folder_(std::move(folder)), manifest_(std::move(manifest)) {}

std::string NewCheckpoint::AddPart(job::LaneInJob lane, size_t lanes,
                                   job::PsIncarnation incarnation) {
  const wire::Placement placement(lanes);
  manifest_.parts.push_back({.file = PartName(lane, lanes, incarnation),
                             .first_bucket = placement.FirstOf(lane),
                             .end_bucket = placement.EndOf(lane)});
  return wire::Encode(wire::Save{.path = fs::absolute(folder_) / manifest_.parts.back().file});
}

Status NewCheckpoint::AddAnswer(size_t part, std::string_view meta) {
  wire::SaveAnswer answer;
  EDL_RETURN_IF_ERROR(wire::Decode(AsBytes(meta), answer));
  manifest_.parts.at(part).bytes = answer.bytes;
  total_.bytes += answer.bytes;
  total_.seconds = std::max(total_.seconds, answer.seconds);
  total_.longest_pause_seconds =
      std::max(total_.longest_pause_seconds, answer.longest_pause_seconds);
  return Ok();
}

void NewCheckpoint::RemoveParts() const {
  for (const Manifest::Part& part : manifest_.parts) {
    std::error_code ignored;
    fs::remove(folder_ / part.file, ignored);
  }
}

}  // namespace edl::checkpoint
