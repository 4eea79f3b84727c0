#include "job/manifest.h"

#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace edl::job {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 1;
constexpr const char* kFile = "manifest.json";

// A name that leads out of the folder is none.
bool IsPlain(const std::string& file) {
  return !file.empty() && file.find('/') == std::string::npos && file != "." && file != "..";
}

}  // namespace

bool HasManifest(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kFile, error);
}

Status WriteManifest(const fs::path& folder, const Manifest& manifest) {
  json parts = json::array();
  for (const Manifest::Part& part : manifest.parts) {
    parts.push_back({{"file", part.file}, {"bytes", part.bytes}});
  }
  json written = {{"format", kFormat}, {"parts", parts}};
  if (manifest.covered.ledger != 0) {
    written["ps_epoch"] = manifest.ps_epoch;
    written["version"] = manifest.version;
    written["covered"] = json::parse(manifest.covered.ToJson());
  }
  return WriteFileAtomically(folder / kFile, written.dump(1) + "\n");
}

Result<Manifest> ReadManifest(const fs::path& folder) {
  const fs::path path = folder / kFile;
  if (!HasManifest(folder)) {
    return NotFound("{} holds no checkpoint: there is no {}", folder.string(), kFile);
  }
  EDL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const json read = json::parse(text, nullptr, false);
  const auto damaged = [&] { return DataLoss("{} is damaged", path.string()); };
  if (!read.is_object()) return damaged();
  if (read.value("format", json()) != kFormat) {
    return DataLoss("{} is not of format {}", path.string(), kFormat);
  }
  const json parts = read.value("parts", json());
  if (!parts.is_array()) return damaged();
  Manifest manifest;
  if (read.contains("covered")) {
    const json epoch = read.value("ps_epoch", json());
    const json version = read.value("version", json());
    if (!epoch.is_number_unsigned() || !version.is_number_integer()) return damaged();
    manifest.ps_epoch = epoch.get<uint64_t>();
    manifest.version = version.get<int64_t>();
    Result<ShardSet> covered = ShardSet::FromJson(read["covered"].dump());
    if (!covered.ok()) return damaged();
    manifest.covered = *std::move(covered);
  }
  std::error_code error;
  for (const json& part : parts) {
    if (!part.is_object()) return damaged();
    const json file = part.value("file", json());
    const json bytes = part.value("bytes", json());
    if (!file.is_string() || !bytes.is_number_unsigned() || !IsPlain(file.get<std::string>())) {
      return damaged();
    }
    manifest.parts.push_back({.file = file.get<std::string>(), .bytes = bytes.get<uint64_t>()});
    const fs::path part_path = folder / manifest.parts.back().file;
    const uintmax_t size = fs::file_size(part_path, error);
    if (error) return DataLoss("{} is missing: {}", part_path.string(), error.message());
    if (size != manifest.parts.back().bytes) {
      return DataLoss("{} has {} bytes, and not {}", part_path.string(), size,
                      manifest.parts.back().bytes);
    }
  }
  return manifest;
}

}  // namespace edl::job
