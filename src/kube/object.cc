#include "kube/object.h"

#include <utility>

#include "base/json.h"
#include "kube/text.h"

namespace edl::kube {
namespace {

using nlohmann::json;

Object::Labels TextsIn(const json& in) {
  Object::Labels out;
  if (!in.is_object()) return out;
  for (const auto& [name, value] : in.items()) {
    if (value.is_string()) out.emplace(name, value.get<std::string>());
  }
  return out;
}

// The field; replaced by an empty object if it is not one.
json& ObjectIn(json& in, const char* name) {
  json& field = in[name];
  if (!field.is_object()) field = json::object();
  return field;
}

}  // namespace

Object::Object(json fields) : fields_(std::move(fields)) {
  if (!fields_.is_object()) fields_ = json::object();
}

Object::Object(const Resource& resource, const ObjectKey& key) : Object() {
  fields_ = {{"apiVersion", resource.api_version()}, {"kind", std::string(resource.kind)}};
  metadata()["name"] = key.name;
  if (!key.ns.empty()) metadata()["namespace"] = key.ns;
}

Result<Object> Object::Parse(std::string_view text) {
  json fields = ReadJsonDownTo(kDeepestAnswer, text);
  if (!fields.is_object()) {
    return DataLoss("expected a JSON object from the API server, found: {}", text.substr(0, 100));
  }
  return Object(std::move(fields));
}

std::string Object::kind() const { return TextIn(fields_, "kind"); }
std::string Object::name() const { return TextIn(FieldAt(fields_, {"metadata"}), "name"); }
std::string Object::ns() const { return TextIn(FieldAt(fields_, {"metadata"}), "namespace"); }
std::string Object::uid() const { return TextIn(FieldAt(fields_, {"metadata"}), "uid"); }
std::string Object::resource_version() const {
  return TextIn(FieldAt(fields_, {"metadata"}), "resourceVersion");
}

Object::Labels Object::labels() const { return TextsIn(FieldAt(fields_, {"metadata", "labels"})); }
Object::Labels Object::annotations() const {
  return TextsIn(FieldAt(fields_, {"metadata", "annotations"}));
}

std::optional<std::string> Object::label(const std::string& name) const {
  const json& found = FieldAt(fields_, {"metadata", "labels", name.c_str()});
  if (!found.is_string()) return std::nullopt;
  return found.get<std::string>();
}

std::vector<OwnerReference> Object::owners() const {
  std::vector<OwnerReference> out;
  for (const json& owner : ListAt(fields_, {"metadata", "ownerReferences"})) {
    out.push_back({.api_version = TextIn(owner, "apiVersion"),
                   .kind = TextIn(owner, "kind"),
                   .name = TextIn(owner, "name"),
                   .uid = TextIn(owner, "uid"),
                   .controller = FlagIn(owner, "controller")});
  }
  return out;
}

std::optional<WallTime> Object::creation_time() const {
  return ParseTime(TextIn(FieldAt(fields_, {"metadata"}), "creationTimestamp"));
}

std::optional<WallTime> Object::deletion_time() const {
  return ParseTime(TextIn(FieldAt(fields_, {"metadata"}), "deletionTimestamp"));
}

bool Object::deleting() const {
  return !TextIn(FieldAt(fields_, {"metadata"}), "deletionTimestamp").empty();
}

json& Object::metadata() { return ObjectIn(fields_, "metadata"); }

void Object::set_label(const std::string& name, const std::string& value) {
  ObjectIn(metadata(), "labels")[name] = value;
}

void Object::set_annotation(const std::string& name, const std::string& value) {
  ObjectIn(metadata(), "annotations")[name] = value;
}

void Object::set_resource_version(const std::string& version) {
  metadata()["resourceVersion"] = version;
}

void Object::AddOwner(const OwnerReference& owner) {
  json& owners = metadata()["ownerReferences"];
  if (!owners.is_array()) owners = json::array();
  json entry = {{"apiVersion", owner.api_version},
                {"kind", owner.kind},
                {"name", owner.name},
                {"uid", owner.uid}};
  // Without blockOwnerDeletion, which requires an additional permission on the owner.
  if (owner.controller) entry["controller"] = true;
  owners.push_back(std::move(entry));
}

OwnerReference Object::AsOwner() const {
  return {.api_version = TextIn(fields_, "apiVersion"),
          .kind = kind(),
          .name = name(),
          .uid = uid(),
          .controller = false};
}

}  // namespace edl::kube
