#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "checkpoint/manifest.h"
#include "job/ids.h"
#include "wire/messages.h"

namespace edl::checkpoint {

// The file that a lane writes, `lane` of `lanes`, counted over all servers. It names the
// incarnation of the server, so that a process that was replaced never writes to the file of its
// successor.
std::string PartName(job::LaneInJob lane, size_t lanes, job::PsIncarnation incarnation);

// A checkpoint while it is saved, by a client or by the controller of parameter servers: names the
// part of each lane, and completes the manifest from the answers. The caller makes the folder
// before it sends anything, and writes the manifest after the last answer.
//
// Confined.
class NewCheckpoint {
 public:
  // `manifest` has everything but the parts.
  explicit NewCheckpoint(std::filesystem::path folder, Manifest manifest = {});

  const std::filesystem::path& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }

  // Adds the part of a lane. Returns the Save message for that lane, encoded.
  std::string AddPart(job::LaneInJob lane, size_t lanes, job::PsIncarnation incarnation);
  // Takes a lane's answer to Save; parts are counted in the order of AddPart. InvalidArgument: the
  // answer cannot be decoded.
  Status AddAnswer(size_t part, std::string_view meta);
  // All bytes so far, and the longest times of any lane.
  const wire::SaveAnswer& total() const { return total_; }
  // After a save that failed: removes the parts that lanes have written.
  void RemoveParts() const;

 private:
  const std::filesystem::path folder_;
  Manifest manifest_;
  wire::SaveAnswer total_;
};

}  // namespace edl::checkpoint
