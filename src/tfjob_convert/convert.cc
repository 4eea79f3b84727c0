#include "tfjob_convert/convert.h"

#include "tfjob_convert/comments.h"
#include "tfjob_convert/edit.h"
#include "tfjob_convert/notes.h"
#include "tfjob_convert/old_labels.h"
#include "tfjob_convert/rewrite.h"

#include "base/json.h"
#include "base/text.h"
#include "kube/yaml.h"

namespace edl::tfjob_convert {
namespace {

constexpr size_t kLongestName = 80;

// "TFJob github", for notes.
std::string NameOf(const Json& object) {
  const std::string kind = TextOf(object, "kind");
  std::string name = kind.empty() ? "object" : OneLine(kind, kLongestName);
  const Json* metadata = Find(object, "metadata");
  if (metadata == nullptr) return name;
  for (const char* field : {"name", "generateName"}) {
    const std::string text = TextOf(*metadata, field);
    if (!text.empty()) return name + " " + OneLine(text, kLongestName);
  }
  return name;
}

bool IsList(const Json& object) {
  return (TextOf(object, "kind") == "List" && TextOf(object, "apiVersion") == "v1") ||
         IsTfJobList(object);
}

// Converts an object of a document, and those within it if it is a list. Returns whether it
// changed.
Result<bool> ConvertObject(Json& object, const kube::YamlDocument& document, const Path& path,
                           Conversion& out) {
  Notes notes(document, path, NameOf(object), out.notes);
  if (!object.is_object()) return notes.Error({}, "expected an object, found {}", Shown(object));
  if (IsTfJob(object)) {
    ++out.jobs;
    EDL_RETURN_IF_ERROR(RewriteTfJob(object, notes));
    if (notes.changes() > 0) ++out.changed_jobs;
    return notes.changes() > 0;
  }
  if (!IsList(object)) {
    ReportOldLabels(object, notes);
    return false;
  }
  if (IsTfJobList(object)) EDL_RETURN_IF_ERROR(SetVersion(object, notes).status());
  bool changed = notes.changes() > 0;
  Json* items = Find(object, "items");
  if (items == nullptr || items->is_null()) return changed;
  if (!items->is_array()) {
    return notes.Error({"items"}, "items must be a list, found {}", Shown(*items));
  }
  for (size_t i = 0; i < items->size(); ++i) {
    const Path below = Below(Below(path, "items"), std::to_string(i));
    EDL_ASSIGN_OR_RETURN(const bool item_changed, ConvertObject((*items)[i], document, below, out));
    changed = changed || item_changed;
  }
  return changed;
}

constexpr std::string_view kMarker = "---";

bool IsJson(std::string_view text) {
  text = Trim(text);
  if (text.starts_with(kMarker)) text = Trim(text.substr(kMarker.size()));
  return text.starts_with('{') && !ReadJson(text).is_discarded();
}

}  // namespace

Result<Conversion> Convert(std::string_view text, JsonOutput json_output) {
  EDL_ASSIGN_OR_RETURN(std::vector<kube::YamlDocument> documents, kube::ReadYaml(text));
  Conversion out;
  for (kube::YamlDocument& document : documents) {
    bool changed = false;
    if (!document.value.is_null()) {
      Json value = document.value;
      EDL_ASSIGN_OR_RETURN(changed, ConvertObject(value, document, {}, out));
      document.value = std::move(value);
    }
    if (!changed) {
      out.text += document.text;
      continue;
    }
    const bool is_json = IsJson(document.text);
    if (document.text.starts_with(kMarker)) out.text += fmt::format("{}\n", kMarker);
    out.text += is_json && json_output == JsonOutput::kJson ? Dump(document.value, 2) + "\n"
                                                            : kube::ToOrderedYaml(document.value);
    out.lost_comments = out.lost_comments || (!is_json && HasComment(document.text));
  }
  return out;
}

}  // namespace edl::tfjob_convert
