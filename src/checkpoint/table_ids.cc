#include "checkpoint/table_ids.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/manifest.h"
#include "checkpoint/part_file.h"

namespace edl::checkpoint {
namespace {

// The index of a table in the head of a part. nullopt: the part does not have the table.
std::optional<uint32_t> IndexOfTable(const Chunk& head, const std::string& table) {
  const std::string_view text(reinterpret_cast<const char*>(head.content.data()),
                              head.content.size());
  const nlohmann::json parsed = ReadJson(text);
  uint32_t index = 0;
  for (const nlohmann::json& entry : ListAt(parsed, {"parameters", "tables"})) {
    if (TextIn(entry, "name") == table) return index;
    ++index;
  }
  return std::nullopt;
}

Status AppendIds(const Chunk& rows, const std::filesystem::path& path, std::vector<int64_t>& ids) {
  if (rows.records == 0) return Ok();
  const size_t stride = rows.content.size() / rows.records;
  // Rows are padded to 8 bytes.
  if (stride == 0 || stride % sizeof(int64_t) != 0 ||
      stride * rows.records != rows.content.size()) {
    return DataLoss("{} has a chunk of {} rows in {} bytes", path.string(), rows.records,
                    rows.content.size());
  }
  for (uint64_t row = 0; row < rows.records; ++row) {
    int64_t id = 0;
    std::memcpy(&id, rows.content.data() + row * stride, sizeof(id));
    ids.push_back(id);
  }
  return Ok();
}

// Returns whether the part has the table.
Result<bool> AppendIdsOfPart(const std::filesystem::path& path, const std::string& table,
                             std::vector<int64_t>& ids) {
  EDL_ASSIGN_OR_RETURN(const auto reader, PartReader::Open(path));
  std::optional<uint32_t> index;
  while (true) {
    EDL_ASSIGN_OR_RETURN(const std::optional<Chunk> chunk, reader->Next());
    if (!chunk) return index.has_value();
    if (chunk->kind == ChunkKind::kHead) {
      index = IndexOfTable(*chunk, table);
      if (!index) return false;
    } else if (chunk->kind == ChunkKind::kRows && index == chunk->index) {
      EDL_RETURN_IF_ERROR(AppendIds(*chunk, path, ids));
    }
  }
}

}  // namespace

Result<std::vector<int64_t>> ReadTableIds(const std::filesystem::path& folder,
                                          const std::string& table) {
  EDL_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(folder));
  std::vector<int64_t> ids;
  bool found = false;
  for (const Manifest::Part& part : manifest.parts) {
    EDL_ASSIGN_OR_RETURN(const bool has_table, AppendIdsOfPart(folder / part.file, table, ids));
    found = found || has_table;
  }
  if (!found) return NotFound("the checkpoint {} has no table '{}'", folder.string(), table);
  return ids;
}

Result<std::filesystem::path> NewestCheckpoint(const std::filesystem::path& folder) {
  std::optional<std::pair<std::pair<int64_t, int64_t>, std::filesystem::path>> newest;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = CheckpointName::FromText(entry->path().filename().string());
    if (!name) continue;
    const Result<bool> complete = HasManifest(entry->path());
    if (!complete.ok() || !*complete) continue;
    const std::pair order(name->version, name->save);
    if (!newest || order > newest->first) newest.emplace(order, entry->path());
  }
  if (error) return NotFound("cannot list checkpoints in {}: {}", folder.string(), error.message());
  if (!newest) return NotFound("there is no complete checkpoint in {}", folder.string());
  return newest->second;
}

}  // namespace edl::checkpoint
