#include "tfjob_convert/notes.h"

#include <utility>

namespace edl::tfjob_convert {
namespace {

// ", item 3" for each list around the object.
std::string ItemsOf(const Path& path) {
  std::string out;
  for (size_t i = 1; i < path.size(); i += 2) {
    out += fmt::format(", item {}", std::stoi(path[i]) + 1);  // the path is items/2/items/0
  }
  return out;
}

}  // namespace

Notes::Notes(const kube::YamlDocument& document, Path path, const std::string& name,
             std::vector<std::string>& lines)
    : document_(document),
      path_(std::move(path)),
      name_(name),
      where_(fmt::format("document {}{}, {}: ", document.number, ItemsOf(path_), name)),
      lines_(lines) {}

Status Notes::ErrorAt(const Path& path, const std::string& what) const {
  Path whole = path_;
  whole.insert(whole.end(), path.begin(), path.end());
  return InvalidArgument("document {}, line {}, {}: {}", document_.number,
                         kube::LineOf(document_, whole), name_, what);
}

Path Below(Path path, std::string step) {
  path.push_back(std::move(step));
  return path;
}

}  // namespace edl::tfjob_convert
