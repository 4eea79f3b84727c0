#include "tfjob_convert/fields.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "base/flags.h"
#include "base/text.h"

namespace edl::tfjob_convert {
namespace {

constexpr size_t kLongestKey = 60;

std::string DidYouMean(const std::string& name, Names first, Names second) {
  std::vector<std::string> names(first.begin(), first.end());
  names.insert(names.end(), second.begin(), second.end());
  const std::vector<std::string> near = NearestNames(name, names);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near.front());
}

}  // namespace

bool IsOneOf(std::string_view name, Names names) {
  return std::ranges::find(names, name) != names.end();
}

void FixCase(Json& object, Names fields, std::string_view where, Notes& notes) {
  std::vector<std::string> keys;
  std::set<std::string_view> present;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(key);
    const auto field = std::ranges::find(fields, key);
    if (field != fields.end()) present.insert(*field);
  }
  for (const std::string& key : keys) {
    if (IsOneOf(key, fields)) continue;
    for (const std::string_view field : fields) {
      if (!SameLetters(key, field)) continue;
      if (!present.insert(field).second) {
        notes.Warn("{}.{} and {}.{} are both given; v1 reads the latter", where, key, where, field);
      } else {
        Rename(object, key, field);
        notes.Change("{}.{} -> {}.{}", where, key, where, field);
      }
    }
  }
}

void WarnOfUnknownFields(const Json& object, Names fields, Names similar, std::string_view where,
                         Notes& notes) {
  for (const auto& [key, value] : object.items()) {
    if (IsOneOf(key, fields)) continue;
    notes.Warn("{}.{} is not a field of kubeflow.org/v1, and was kept{}", where,
               OneLine(key, kLongestKey), DidYouMean(key, fields, similar));
  }
}

void WarnOfUnknownValue(const Json& object, std::string_view field, Names values,
                        std::string_view where, Notes& notes) {
  if (!Has(object, field)) return;
  const std::string value = Shown(*Find(object, field));
  if (IsOneOf(value, values)) return;
  notes.Warn("{}.{} is '{}', but must be one of {}", where, field, value, fmt::join(values, ", "));
}

}  // namespace edl::tfjob_convert
