#include "job/volume.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "job/pairs.h"

namespace edl::job {
namespace {

constexpr std::array<std::pair<HostPathType, std::string_view>, 8> kHostPathTypes = {{
    {HostPathType::kAny, ""},
    {HostPathType::kDirectory, "Directory"},
    {HostPathType::kDirectoryOrCreate, "DirectoryOrCreate"},
    {HostPathType::kFile, "File"},
    {HostPathType::kFileOrCreate, "FileOrCreate"},
    {HostPathType::kSocket, "Socket"},
    {HostPathType::kCharDevice, "CharDevice"},
    {HostPathType::kBlockDevice, "BlockDevice"},
}};

Result<HostPathType> ParseHostPathType(const Pair& pair) {
  for (const auto& [type, name] : kHostPathTypes) {
    if (pair.value == name) return type;
  }
  return InvalidArgument(
      "unknown type '{}'{}; expected Directory, DirectoryOrCreate, File, FileOrCreate, Socket, "
      "CharDevice or BlockDevice",
      pair.value, At(pair.value_at));
}

Status Add(Volume& volume, const Pair& pair) {
  if (pair.key == "claim_name") {
    volume.claim_name = pair.value;
  } else if (pair.key == "host_path") {
    volume.host_path = pair.value;
  } else if (pair.key == "type") {
    EDL_ASSIGN_OR_RETURN(volume.type, ParseHostPathType(pair));
  } else if (pair.key == "mount_path") {
    volume.mount_path = pair.value;
  } else if (pair.key == "sub_path") {
    volume.sub_path = pair.value;
  } else {
    return InvalidArgument(
        "unknown key '{}'{}; expected claim_name, host_path, type, mount_path or sub_path",
        pair.key, At(pair.key_at));
  }
  return Ok();
}

bool LeavesItsFolder(std::string_view path) {
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t slash = std::min(path.find('/', begin), path.size());
    if (path.substr(begin, slash - begin) == "..") return true;
    begin = slash + 1;
  }
  return false;
}

Status Check(const Volume& volume) {
  if (volume.mount_path.empty()) return InvalidArgument("mount_path is missing");
  if (volume.mount_path.front() != '/') {
    return InvalidArgument("mount_path={} must be an absolute path", volume.mount_path);
  }
  if (volume.claim_name.empty() == volume.host_path.empty()) {
    return InvalidArgument("exactly one of claim_name and host_path is needed");
  }
  if (!volume.host_path.empty() && volume.host_path.front() != '/') {
    return InvalidArgument("host_path={} must be an absolute path", volume.host_path);
  }
  if (volume.type != HostPathType::kAny && volume.host_path.empty()) {
    return InvalidArgument("type={} is allowed only with host_path", NameOf(volume.type));
  }
  if (volume.sub_path.starts_with("/") || LeavesItsFolder(volume.sub_path)) {
    return InvalidArgument("sub_path={} must not lead out of the volume", volume.sub_path);
  }
  return Ok();
}

Result<Volume> MakeVolume(const std::vector<Pair>& pairs, size_t number) {
  Volume volume;
  for (const Pair& pair : pairs) EDL_RETURN_IF_ERROR(Add(volume, pair));
  const size_t at = pairs.empty() ? 0 : pairs.front().key_at;
  EDL_RETURN_IF_ERROR(Check(volume).Within(fmt::format("volume {}{}", number, At(at))));
  return volume;
}

Result<std::vector<std::vector<Pair>>> SplitJson(std::string_view text) {
  EDL_ASSIGN_OR_RETURN(const nlohmann::json list, ParseJson(text));
  std::vector<std::vector<Pair>> out;
  const auto add = [&](const nlohmann::json& item) -> Status {
    EDL_ASSIGN_OR_RETURN(std::vector<Pair> pairs, ParseJsonPairs(Dump(item)));
    out.push_back(std::move(pairs));
    return Ok();
  };
  if (list.is_object()) {
    EDL_RETURN_IF_ERROR(add(list));
    return out;
  }
  for (const nlohmann::json& item : list) EDL_RETURN_IF_ERROR(add(item));
  return out;
}

Result<std::vector<std::vector<Pair>>> SplitText(std::string_view text) {
  std::vector<std::vector<Pair>> out;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(';', begin), text.size());
    EDL_ASSIGN_OR_RETURN(std::vector<Pair> pairs,
                         ParsePairs(text.substr(begin, end - begin), begin + 1));
    if (!pairs.empty()) out.push_back(std::move(pairs));
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::string_view NameOf(HostPathType type) {
  for (const auto& [known, name] : kHostPathTypes) {
    if (type == known) return name;
  }
  return "?";
}

Result<std::vector<Volume>> ParseVolumes(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  const bool is_json = trimmed.starts_with("[") || trimmed.starts_with("{");
  EDL_ASSIGN_OR_RETURN(const auto mounts, is_json ? SplitJson(trimmed) : SplitText(text));
  std::vector<Volume> volumes;
  for (const std::vector<Pair>& pairs : mounts) {
    EDL_ASSIGN_OR_RETURN(Volume volume, MakeVolume(pairs, volumes.size() + 1));
    const auto same = [&](const Volume& other) { return other.mount_path == volume.mount_path; };
    if (std::any_of(volumes.begin(), volumes.end(), same)) {
      return InvalidArgument("two volumes have the same mount_path={}", volume.mount_path);
    }
    volumes.push_back(std::move(volume));
  }
  return volumes;
}

}  // namespace edl::job
