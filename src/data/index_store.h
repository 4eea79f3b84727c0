#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "data/record_index.h"

namespace edl::data {

// Index files: `.NAME.edlindex` beside the data, or, where that cannot be written, in a folder that
// the caller gives. An index that is missing, damaged or stale is rebuilt by the caller, and one
// that cannot be stored is only slower the next time, so no call fails.
//
// Thread-safe, also between processes: a reader sees a whole index or none.
class IndexStore {
 public:
  static constexpr std::string_view kSuffix = ".edlindex";

  // An empty folder: indexes are stored beside the data or not at all.
  explicit IndexStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::optional<RecordIndex> Load(const std::string& data_path, const IndexKey& key) const;
  // Returns where it was stored, or nothing.
  std::optional<std::filesystem::path> Save(const std::string& data_path, const IndexKey& key,
                                            const RecordIndex& index) const;

 private:
  const std::filesystem::path folder_;
};

}  // namespace edl::data
