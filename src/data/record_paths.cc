#include "data/record_paths.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <glob.h>

namespace edl::data {
namespace {

namespace fs = std::filesystem;

bool IsDataName(const fs::path& path) {
  const std::string name = path.filename().string();
  return !name.empty() && name.front() != '.' && name.front() != '_';
}

Result<std::vector<std::string>> FilesIn(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> found;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    std::error_code ignored;
    if (IsDataName(entries->path()) && !entries->is_directory(ignored)) {
      found.push_back(entries->path().string());
    }
  }
  if (error) return StatusFromErrno(error.value(), fmt::format("reading the directory {}", folder));
  if (found.empty()) {
    return NotFound(
        "the directory {} has no record files (names that begin with . or _, and subdirectories, "
        "are not read)",
        folder);
  }
  return found;
}

Result<std::vector<std::string>> FilesMatching(const std::string& pattern) {
  glob_t matches = {};
  const int result = glob(pattern.c_str(), GLOB_ERR, nullptr, &matches);
  std::vector<std::string> found;
  for (size_t i = 0; result == 0 && i < matches.gl_pathc; ++i) {
    const fs::path path(matches.gl_pathv[i]);
    std::error_code ignored;
    if (IsDataName(path) && !fs::is_directory(path, ignored)) found.push_back(path.string());
  }
  globfree(&matches);
  if (result == GLOB_ABORTED) {
    return PermissionDenied("a directory of the pattern {} cannot be read", pattern);
  }
  if (result == GLOB_NOSPACE) return ResourceExhausted("no memory for the pattern {}", pattern);
  if (found.empty()) return NotFound("no record file matches the pattern {}", pattern);
  return found;
}

}  // namespace

Result<std::vector<std::string>> FindRecordFiles(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const bool is_pattern = path.find_first_of("*?[") != std::string::npos;
  std::vector<std::string> found = {path};
  if (fs::is_directory(status)) {
    EDL_ASSIGN_OR_RETURN(found, FilesIn(path));
  } else if (!fs::exists(status) && is_pattern) {
    EDL_ASSIGN_OR_RETURN(found, FilesMatching(path));
  } else if (status.type() == fs::file_type::not_found) {
    return NotFound("there is no file or directory {}", path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace edl::data
