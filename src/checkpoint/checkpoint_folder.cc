#include "checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "base/file.h"
#include "base/log.h"

namespace edl::checkpoint {
namespace {

namespace fs = std::filesystem;

template <typename Number>
bool Read(std::string_view text, int base, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string CheckpointName::ToText() const {
  return fmt::format("version-{}.{:016x}.{}", version, ledger.value(), save);
}

std::optional<CheckpointName> CheckpointName::FromText(std::string_view text) {
  constexpr std::string_view kBegin = "version-";
  if (!text.starts_with(kBegin)) return std::nullopt;
  const std::string_view rest = text.substr(kBegin.size());
  const size_t first = rest.find('.');
  const size_t second = first == std::string_view::npos ? first : rest.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  CheckpointName name;
  uint64_t ledger = 0;
  const bool is_one = Read(rest.substr(0, first), 10, name.version) &&
                      Read(rest.substr(first + 1, second - first - 1), 16, ledger) &&
                      Read(rest.substr(second + 1), 10, name.save);
  name.ledger = job::LedgerId(ledger);
  // Numbers with leading zeros or a sign make another name.
  if (!is_one || name.ToText() != text) return std::nullopt;
  return name;
}

Status MakeCheckpointFolder(const fs::path& folder) {
  std::error_code error;
  const fs::path parent = fs::absolute(folder).parent_path();
  if (fs::create_directories(parent, error)) {
    EDL_RETURN_IF_ERROR(SyncFolder(parent.parent_path()));
  }
  if (error) return StatusFromErrno(error.value(), fmt::format("making {}", parent.string()));
  const bool made = fs::create_directory(folder, error);
  if (error) return StatusFromErrno(error.value(), fmt::format("making {}", folder.string()));
  if (!made) return AlreadyExists("{} already exists: another run saves to it", folder.string());
  return SyncFolder(parent);
}

std::vector<std::string> RemoveOrphans(const fs::path& folder, job::LedgerId ledger,
                                       const std::vector<std::string>& keep, int64_t below) {
  std::vector<std::string> orphans;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    const std::optional<CheckpointName> parsed = CheckpointName::FromText(name);
    if (!parsed || parsed->ledger != ledger || parsed->save >= below) continue;
    if (std::ranges::find(keep, name) == keep.end()) orphans.push_back(name);
  }
  std::erase_if(orphans, [&](const std::string& name) {
    std::error_code failed;
    fs::remove_all(folder / name, failed);
    if (failed)
      LOG_WARNING("cannot remove the incomplete checkpoint {}: {}", name, failed.message());
    return static_cast<bool>(failed);
  });
  return orphans;
}

}  // namespace edl::checkpoint
