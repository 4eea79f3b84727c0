#include "kube/watch_frames.h"

#include <array>
#include <utility>

#include "base/json.h"
#include "kube/object.h"

namespace edl::kube {
namespace {

using nlohmann::json;
using Kind = WatchEvent::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 5> kKinds = {{{"ADDED", Kind::kAdded},
                                                                      {"MODIFIED", Kind::kModified},
                                                                      {"DELETED", Kind::kDeleted},
                                                                      {"BOOKMARK", Kind::kBookmark},
                                                                      {"ERROR", Kind::kError}}};

Result<WatchEvent> ParseEvent(std::string_view line) {
  json in = ReadJsonDownTo(kDeepestAnswer, line);
  const auto type = in.is_object() ? in.find("type") : in.end();
  const auto object = in.is_object() ? in.find("object") : in.end();
  if (!in.is_object() || type == in.end() || !type->is_string() || object == in.end() ||
      !object->is_object()) {
    return DataLoss("expected a watch event with a type and an object, found: {}",
                    line.substr(0, 100));
  }
  const std::string& name = type->get_ref<const std::string&>();
  for (const auto& [known, kind] : kKinds) {
    if (known == name) return WatchEvent{kind, std::move(*object)};
  }
  return DataLoss("a watch event has the unknown type '{}'", name);
}

}  // namespace

Result<std::vector<WatchEvent>> WatchFrames::Feed(std::string_view bytes) {
  std::vector<WatchEvent> events;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    rest_ += bytes.substr(0, end);
    if (rest_.size() > kMaxEventBytes) {
      return DataLoss("a watch event is longer than {} bytes", kMaxEventBytes);
    };
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(rest_, {});
    if (line.find_first_not_of(" \r\t") == std::string::npos) continue;
    EDL_ASSIGN_OR_RETURN(WatchEvent event, ParseEvent(line));
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace edl::kube
