#include "checkpoint/manifest.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "wire/placement.h"

namespace edl::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 3;
constexpr const char* kFile = "manifest.json";

// Whether the name stays within the folder.
bool IsPlain(const std::string& file) {
  return !file.empty() && file.find('/') == std::string::npos && file != "." && file != "..";
}

// DataLoss unless the parts have each bucket once.
Status CheckBuckets(std::vector<Manifest::Part> parts, const fs::path& path) {
  std::ranges::sort(parts, {}, &Manifest::Part::first_bucket);
  uint64_t next = 0;
  for (const Manifest::Part& part : parts) {
    if (part.first_bucket != next || part.end_bucket <= next) {
      return DataLoss("{} is damaged: bucket {} is in no part, or in more than one", path.string(),
                      std::min(next, part.first_bucket));
    }
    next = part.end_bucket;
  }
  if (next == wire::kBuckets) return Ok();
  return DataLoss("{} is damaged: its parts have {} of {} buckets", path.string(), next,
                  wire::kBuckets);
}

// Only a file that does not exist counts as missing: after any other error the file may be good.
Status CheckPart(const fs::path& path, uint64_t bytes) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory) {
    return DataLoss("{} is missing", path.string());
  }
  if (error)
    return StatusFromErrno(error.value(), fmt::format("reading the size of {}", path.string()));
  if (size != bytes) {
    return DataLoss("{} has {} bytes, expected {}", path.string(), size, bytes);
  }
  return Ok();
}

Result<Manifest::Part> ReadPart(const json& in, const fs::path& path) {
  const auto damaged = [&] {
    return DataLoss("{} is damaged: {} does not describe a part", path.string(), Excerpt(in));
  };
  if (!in.is_object()) return damaged();
  const json file = in.value("file", json());
  const json bytes = in.value("bytes", json());
  if (!file.is_string() || !bytes.is_number_unsigned() || !IsPlain(file.get<std::string>())) {
    return damaged();
  }
  Manifest::Part part{.file = file.get<std::string>(), .bytes = bytes.get<uint64_t>()};
  const json first = in.value("first_bucket", json());
  const json end = in.value("end_bucket", json());
  if (!first.is_number_unsigned() || !end.is_number_unsigned()) return damaged();
  part.first_bucket = first.get<uint64_t>();
  part.end_bucket = end.get<uint64_t>();
  return part;
}

}  // namespace

std::vector<std::string> Manifest::PathsFor(const fs::path& folder, uint64_t first,
                                            uint64_t end) const {
  std::vector<std::string> paths;
  for (const Part& part : parts) {
    if (part.first_bucket < end && first < part.end_bucket) {
      paths.push_back(fs::absolute(folder) / part.file);
    }
  }
  return paths;
}

Result<bool> HasManifest(const fs::path& folder) {
  std::error_code error;
  const bool exists = fs::exists(folder / kFile, error);
  if (error) {
    return StatusFromErrno(error.value(),
                           fmt::format("reading the size of {}", (folder / kFile).string()));
  }
  return exists;
}

Status WriteManifest(const fs::path& folder, const Manifest& manifest) {
  json parts = json::array();
  for (const Manifest::Part& part : manifest.parts) {
    parts.push_back({{"file", part.file},
                     {"bytes", part.bytes},
                     {"first_bucket", part.first_bucket},
                     {"end_bucket", part.end_bucket}});
  }
  json written = {{"format", kFormat}, {"parts", parts}};
  if (manifest.covered.ledger != job::LedgerId()) {
    written["ps_epoch"] = manifest.ps_epoch.value();
    written["version"] = manifest.version;
    written["covered"] = ReadJson(manifest.covered.ToJson());
  }
  EDL_RETURN_IF_ERROR(WriteFileAtomically(folder / kFile, Dump(written, 1) + "\n"));
  return SyncFolder(fs::absolute(folder).parent_path());
}

Result<Manifest> ReadManifest(const fs::path& folder) {
  const fs::path path = folder / kFile;
  Result<std::string> text = ReadFile(path);
  if (text.status().code() == Code::kNotFound) {
    return NotFound("{} contains no checkpoint: it has no {}", folder.string(), kFile);
  }
  if (!text.ok()) return text.status();
  const Result<json> parsed = ParseJson(*text);
  const auto damaged = [&](std::string_view why) {
    return DataLoss("{} is damaged: {}", path.string(), why);
  };
  if (!parsed.ok()) return damaged(parsed.status().message());
  if (!parsed->is_object()) return damaged("expected a JSON object");
  const json& read = *parsed;
  const json format = read.value("format", json());
  if (!format.is_number_unsigned()) return damaged("'format' is not a number");
  if (format != kFormat) {
    return FailedPrecondition(
        "{} has format {}, and this program reads format {}: restore it with the elasticdl that "
        "wrote it",
        path.string(), format.get<uint64_t>(), kFormat);
  }
  const json parts = read.value("parts", json());
  if (!parts.is_array()) return damaged("'parts' is not a list");
  Manifest manifest;
  if (read.contains("covered")) {
    const json epoch = read.value("ps_epoch", json());
    const json version = read.value("version", json());
    if (!epoch.is_number_unsigned() || !version.is_number_integer()) {
      return damaged("'ps_epoch' or 'version' is not a number");
    }
    manifest.ps_epoch = job::PsEpoch(epoch.get<uint64_t>());
    manifest.version = version.get<int64_t>();
    Result<ShardSet> covered = ShardSet::FromJson(Dump(read["covered"]));
    if (!covered.ok()) return damaged(covered.status().message());
    manifest.covered = *std::move(covered);
  }
  for (const json& part : parts) {
    EDL_ASSIGN_OR_RETURN(Manifest::Part known, ReadPart(part, path));
    manifest.parts.push_back(std::move(known));
  }
  EDL_RETURN_IF_ERROR(CheckBuckets(manifest.parts, path));
  for (const Manifest::Part& part : manifest.parts) {
    EDL_RETURN_IF_ERROR(CheckPart(folder / part.file, part.bytes));
  }
  return manifest;
}

}  // namespace edl::checkpoint
