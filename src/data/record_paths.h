#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace edl::data {

// The files that `path` means, sorted by name: a file; the files in a directory, without those in
// its subdirectories; or the files that match a pattern with *, ? or []. In directories and
// patterns, names that begin with "." or "_" are skipped: index files, temporary files, and markers
// such as _SUCCESS. NotFound: there is no file; the message has the path.
Result<std::vector<std::string>> FindRecordFiles(const std::string& path);

}  // namespace edl::data
