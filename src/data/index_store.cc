#include "data/index_store.h"

#include <string_view>
#include <system_error>
#include <vector>

#include "base/file.h"

namespace edl::data {
namespace {

namespace fs = std::filesystem;

// FNV-1a. A collision is harmless: the stamp of the other file differs.
uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325U;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  }
  return hash;
}

std::vector<fs::path> PlacesOf(const std::string& data_path, const fs::path& folder) {
  const fs::path data(data_path);
  std::vector<fs::path> places = {
      data.parent_path() / fmt::format(".{}{}", data.filename().string(), IndexStore::kSuffix)};
  if (!folder.empty()) {
    std::error_code ignored;
    const fs::path whole = fs::absolute(data, ignored).lexically_normal();
    places.push_back(folder /
                     fmt::format("{:016x}{}", HashOf(whole.string()), IndexStore::kSuffix));
  }
  return places;
}

}  // namespace

std::optional<RecordIndex> IndexStore::Load(const std::string& data_path,
                                            const IndexKey& key) const {
  for (const fs::path& place : PlacesOf(data_path, folder_)) {
    const Result<std::string> bytes = ReadFile(place);
    if (!bytes.ok()) continue;
    Result<RecordIndex> index = DecodeIndex(*bytes, key);
    if (index.ok()) return *std::move(index);
  }
  return std::nullopt;
}

std::optional<fs::path> IndexStore::Save(const std::string& data_path, const IndexKey& key,
                                         const RecordIndex& index) const {
  const std::string bytes = EncodeIndex(index, key);
  constexpr unsigned kMode = 0644;
  for (const fs::path& place : PlacesOf(data_path, folder_)) {
    std::error_code ignored;
    if (place.parent_path() == folder_) fs::create_directories(folder_, ignored);
    if (WriteFileAtomically(place, bytes, kMode).ok()) return place;
  }
  return std::nullopt;
}

}  // namespace edl::data
