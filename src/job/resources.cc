#include "job/resources.h"

#include <charconv>
#include <cmath>

#include "base/quantity.h"
#include "base/text.h"
#include "job/pairs.h"

namespace edl::job {
namespace {

Result<double> ParseCpu(std::string_view text) {
  double cores = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, cores);
  if (error == std::errc() && std::isfinite(cores) && cores >= 0) {
    if (stop == end) return cores;
    if (std::string_view(stop, 1) == "m" && stop + 1 == end && cores == std::floor(cores)) {
      return cores / 1000;
    }
  }
  return InvalidArgument("'{}' is not a number of cores such as 0.5 or 500m", text);
}

Status CheckCount(std::string_view text) {
  int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || stop != end || count < 0) {
    return InvalidArgument("'{}' is not a whole number", text);
  }
  return Ok();
}

Status Add(Resources& out, const Pair& pair) {
  if (pair.key == "cpu") {
    EDL_ASSIGN_OR_RETURN(out.cpu, ParseCpu(pair.value));
  } else if (pair.key == "memory") {
    EDL_ASSIGN_OR_RETURN(out.memory_bytes, ParseByteCount(pair.value));
  } else if (pair.key == "disk" || pair.key == "ephemeral-storage") {
    EDL_RETURN_IF_ERROR(ParseByteCount(pair.value).status());
  } else if (pair.key == "gpu" || pair.key.ends_with("/gpu")) {
    EDL_RETURN_IF_ERROR(CheckCount(pair.value));
  } else if (!pair.key.starts_with("nvidia.com")) {
    return InvalidArgument(
        "unknown resource; expected cpu, memory, disk, ephemeral-storage, gpu, "
        "<vendor>/gpu or nvidia.com/<kind>");
  }
  const std::string name = pair.key == "gpu" ? "nvidia.com/gpu" : pair.key;
  if (!out.amounts.emplace(name, pair.value).second) {
    return InvalidArgument("{} is given twice", name);
  }
  return Ok();
}

}  // namespace

Result<Resources> ParseResources(std::string_view text) {
  const bool is_json = Trim(text).starts_with("{");
  EDL_ASSIGN_OR_RETURN(const std::vector<Pair> pairs,
                       is_json ? ParseJsonPairs(text) : ParsePairs(text));
  Resources out;
  for (const Pair& pair : pairs) {
    EDL_RETURN_IF_ERROR(Add(out, pair).Within(fmt::format("'{}'{}", pair.key, At(pair.key_at))));
  }
  return out;
}

}  // namespace edl::job
