#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/status.h"
#include "kube/yaml.h"

namespace edl::tfjob_convert {

using Path = std::vector<std::string>;

// Collects the lines about one object of a file, and makes errors that name its line.
//
// Confined.
class Notes {
 public:
  // `path` leads to the object within the document, `name` is its kind and name. Lines are added to
  // `lines`. Both references outlive this object.
  Notes(const kube::YamlDocument& document, Path path, const std::string& name,
        std::vector<std::string>& lines);

  template <typename... Args>
  void Change(fmt::format_string<Args...> format, Args&&... args) {
    ++changes_;
    lines_.push_back(where_ + fmt::format(format, std::forward<Args>(args)...));
  }

  template <typename... Args>
  void Warn(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(where_ + "warning: " + fmt::format(format, std::forward<Args>(args)...));
  }

  // InvalidArgument. `path` leads from the object to the place of the error.
  template <typename... Args>
  Status Error(const Path& path, fmt::format_string<Args...> format, Args&&... args) const {
    return ErrorAt(path, fmt::format(format, std::forward<Args>(args)...));
  }

  int changes() const { return changes_; }

 private:
  Status ErrorAt(const Path& path, const std::string& what) const;

  const kube::YamlDocument& document_;
  const Path path_;
  const std::string name_;
  const std::string where_;  // "document 2, item 3, TFJob github: "
  std::vector<std::string>& lines_;
  int changes_ = 0;
};

// `path` with one more step.
Path Below(Path path, std::string step);

}  // namespace edl::tfjob_convert
