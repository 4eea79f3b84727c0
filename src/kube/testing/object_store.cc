#include "kube/testing/object_store.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "kube/text.h"

namespace edl::kube {
namespace {

using nlohmann::json;

ObjectKey KeyOf(const json& object) { return Object(object).key(); }

std::string PluralOf(const Collection& collection) {
  return collection.substr(collection.rfind('/') + 1);
}

StoreReply Missing(const Collection& collection, const ObjectKey& key) {
  return Refuse(404, "NotFound",
                fmt::format("{} \"{}\" not found", PluralOf(collection), key.name));
}

// Splits at commas outside of parentheses.
std::vector<std::string> Terms(std::string_view selector) {
  std::vector<std::string> out;
  int depth = 0;
  std::string term;
  for (const char c : selector) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      out.push_back(std::exchange(term, {}));
    } else {
      term += c;
    }
  }
  if (!term.empty()) out.push_back(term);
  return out;
}

bool IsOneOf(const std::optional<std::string>& value, std::string_view list) {
  list = Trim(list);
  list = list.substr(1, list.size() - 2);
  const std::vector<std::string> values = Terms(list);
  return value && std::any_of(values.begin(), values.end(),
                              [&](const std::string& one) { return Trim(one) == *value; });
}

// Whether one term of a selector matches. `value_of` returns the value of a name.
template <typename ValueOf>
bool Holds(std::string_view term, const ValueOf& value_of) {
  term = Trim(term);
  const auto name = [&](size_t end) { return std::string(Trim(term.substr(0, end))); };
  if (const size_t at = term.find(" notin "); at != std::string_view::npos) {
    return !IsOneOf(value_of(name(at)), term.substr(at + 7));
  }
  if (const size_t at = term.find(" in "); at != std::string_view::npos) {
    return IsOneOf(value_of(name(at)), term.substr(at + 4));
  }
  if (const size_t at = term.find("!="); at != std::string_view::npos) {
    return value_of(name(at)) != std::string(Trim(term.substr(at + 2)));
  }
  if (const size_t at = term.find('='); at != std::string_view::npos) {
    const size_t value = term.substr(at).starts_with("==") ? at + 2 : at + 1;
    return value_of(name(at)) == std::string(Trim(term.substr(value)));
  }
  if (term.starts_with('!')) return !value_of(std::string(term.substr(1)));
  return value_of(std::string(term)).has_value();
}

template <typename ValueOf>
bool AllHold(const std::string& selector, const ValueOf& value_of) {
  const std::vector<std::string> terms = Terms(selector);
  return std::all_of(terms.begin(), terms.end(),
                     [&](const std::string& term) { return Holds(term, value_of); });
}

// "status.phase".
std::optional<std::string> FieldOf(const json& object, const std::string& path) {
  const json* at = &object;
  for (size_t from = 0; from <= path.size();) {
    const size_t to = std::min(path.find('.', from), path.size());
    at = &FieldAt(*at, {path.substr(from, to - from).c_str()});
    from = to + 1;
  }
  return at->is_string() ? at->get<std::string>() : "";
}

// Whether the deletion of the object is delayed: the kubelet removes a running pod, and finalizers
// hold any object.
bool IsHeld(const Collection& collection, const json& object) {
  const bool finalizers = !ListAt(object, {"metadata", "finalizers"}).empty();
  const bool runs = PluralOf(collection) == "pods" &&
                    !TextIn(FieldAt(object, {"spec"}), "nodeName").empty() &&
                    NumberIn(FieldAt(object, {"metadata"}), "deletionGracePeriodSeconds") > 0;
  return finalizers || runs;
}

// Restores the fields that a client may not change, or may change only through another subresource.
void KeepOwn(const json& before, json& object, std::string_view subresource) {
  if (subresource == "status") {
    if (before.contains("spec")) object["spec"] = before["spec"];
  } else if (before.contains("status")) {
    object["status"] = before["status"];
  }
  for (const char* name : {"uid", "creationTimestamp", "deletionTimestamp", "namespace",
                           "deletionGracePeriodSeconds"}) {
    const json& value = FieldAt(before, {"metadata", name});
    if (!value.is_null()) object["metadata"][name] = value;
  }
}

}  // namespace

StoreReply Refuse(int status, const std::string& reason, const std::string& message) {
  return {status, json{{"kind", "Status"},
                       {"apiVersion", "v1"},
                       {"status", "Failure"},
                       {"code", status},
                       {"reason", reason},
                       {"message", message}}};
}

bool Selects(const Selector& selector, const json& object) {
  const Object typed(object);
  return AllHold(selector.labels, [&](const std::string& name) { return typed.label(name); }) &&
         AllHold(selector.fields, [&](const std::string& name) { return FieldOf(object, name); });
}

const json* ObjectStore::Find(const Collection& collection, const ObjectKey& key) const {
  const auto objects = objects_.find(collection);
  if (objects == objects_.end()) return nullptr;
  const auto found = objects->second.find(key);
  return found == objects->second.end() ? nullptr : &found->second;
}

void ObjectStore::Drop(const Collection& collection, json object) {
  const json before = std::exchange(objects_[collection][KeyOf(object)], nullptr);
  objects_[collection].erase(KeyOf(object));
  object["metadata"]["resourceVersion"] = fmt::format("{}", ++version_);
  changes_.push_back({version_, collection, before, std::move(object), true});
}

StoreReply ObjectStore::Keep(const Collection& collection, json object, int status) {
  const json* found = Find(collection, KeyOf(object));
  const json before = found == nullptr ? json() : *found;
  if (!before.is_null()) {
    object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"];
    if (object == before) return {status, object};
  }
  if (Object(object).deleting() && !IsHeld(collection, object)) {
    Drop(collection, object);
    return {status, object};
  }
  object["metadata"]["resourceVersion"] = fmt::format("{}", ++version_);
  objects_[collection][KeyOf(object)] = object;
  changes_.push_back({version_, collection, before, object, false});
  return {status, std::move(object)};
}

StoreReply ObjectStore::Create(const Collection& collection, json object) {
  const std::string prefix = TextIn(FieldAt(object, {"metadata"}), "generateName");
  if (KeyOf(object).name.empty() && !prefix.empty()) {
    object["metadata"]["name"] = fmt::format("{}{:05}", prefix, made_);
  }
  const ObjectKey key = KeyOf(object);
  if (key.name.empty()) return Refuse(422, "Invalid", "metadata.name: Required value");
  if (Find(collection, key) != nullptr) {
    return Refuse(409, "AlreadyExists",
                  fmt::format("{} \"{}\" already exists", PluralOf(collection), key.name));
  }
  object["metadata"]["uid"] = fmt::format("uid-{}", ++made_);
  object["metadata"]["creationTimestamp"] = "2026-11-15T10:00:00Z";
  if (PluralOf(collection) == "pods") object["status"] = {{"phase", "Pending"}};
  return Keep(collection, std::move(object), 201);
}

StoreReply ObjectStore::Get(const Collection& collection, const ObjectKey& key) const {
  const json* found = Find(collection, key);
  return found == nullptr ? Missing(collection, key) : StoreReply{200, *found};
}

StoreReply ObjectStore::Replace(const Collection& collection, const ObjectKey& key, json object,
                                std::string_view subresource) {
  const json* before = Find(collection, key);
  if (before == nullptr) return Missing(collection, key);
  const std::string version = Object(object).resource_version();
  if (!version.empty() && version != Object(*before).resource_version()) {
    return Refuse(409, "Conflict",
                  fmt::format("Operation cannot be fulfilled on {} \"{}\": the object has been "
                              "modified; please apply your changes to the latest version",
                              PluralOf(collection), key.name));
  }
  KeepOwn(*before, object, subresource);
  return Keep(collection, std::move(object), 200);
}

StoreReply ObjectStore::Patch(const Collection& collection, const ObjectKey& key, PatchType type,
                              const json& patch, std::string_view subresource) {
  const json* before = Find(collection, key);
  if (before == nullptr && type == PatchType::kApply) return Create(collection, patch);
  if (before == nullptr) return Missing(collection, key);
  json object = *before;
  if (type != PatchType::kJson) {
    object.merge_patch(patch);
    return Replace(collection, key, std::move(object), subresource);
  }
  try {
    return Replace(collection, key, object.patch(patch), subresource);
  } catch (const json::exception& why) {
    return Refuse(422, "Invalid", why.what());
  }
}

StoreReply ObjectStore::Delete(const Collection& collection, const ObjectKey& key,
                               const json& options) {
  const json* found = Find(collection, key);
  if (found == nullptr) return Missing(collection, key);
  json object = *found;
  for (const char* name : {"uid", "resourceVersion"}) {
    const json& wanted = FieldAt(options, {"preconditions", name});
    if (!wanted.is_null() && wanted != object["metadata"][name]) {
      return Refuse(409, "Conflict",
                    fmt::format("Precondition failed: {} in precondition: {}, in object meta: {}",
                                name, wanted.dump(), object["metadata"][name].dump()));
    }
  }
  const json& grace = FieldAt(options, {"gracePeriodSeconds"});
  object["metadata"]["deletionTimestamp"] = "2026-11-15T10:00:30Z";
  object["metadata"]["deletionGracePeriodSeconds"] = grace.is_null() ? json(30) : grace;
  return Keep(collection, std::move(object), 200);
}

StoreReply ObjectStore::DeleteMany(const Collection& collection, const std::string& ns,
                                   const Selector& selector, const json& options) {
  std::vector<ObjectKey> selected;
  for (const auto& [key, object] : objects_[collection]) {
    if (key.ns == ns && Selects(selector, object)) selected.push_back(key);
  }
  for (const ObjectKey& key : selected) Delete(collection, key, options);
  return {200, {{"kind", "Status"}, {"status", "Success"}}};
}

StoreReply ObjectStore::List(const Collection& collection, const std::string& ns,
                             const Selector& selector, int limit, const std::string& next) const {
  // "VERSION/NAMESPACE/NAME": the version that is listed, and the last object of the previous page.
  const size_t first = next.find('/');
  const int64_t version = next.empty() ? version_ : std::stoll(next.substr(0, first));
  if (forgotten(version)) {
    return Refuse(410, "Expired", "The provided continue parameter is too old");
  }
  json items = json::array();
  std::string more;
  const auto objects = objects_.find(collection);
  for (const auto& [key, object] : objects == objects_.end() ? Objects() : objects->second) {
    const std::string place = fmt::format("/{}/{}", key.ns, key.name);
    if (!next.empty() && place <= next.substr(first)) continue;
    if (!ns.empty() && key.ns != ns) continue;
    if (!Selects(selector, object)) continue;
    if (limit > 0 && items.size() == static_cast<size_t>(limit)) {
      const ObjectKey last = KeyOf(items.back());
      more = fmt::format("{}/{}/{}", version, last.ns, last.name);
      break;
    }
    items.push_back(object);
    items.back().erase("kind");
    items.back().erase("apiVersion");
  }
  json metadata = {{"resourceVersion", fmt::format("{}", version)}};
  if (!more.empty()) metadata["continue"] = more;
  return {200, {{"kind", "List"}, {"metadata", metadata}, {"items", std::move(items)}}};
}

json ObjectStore::Put(const Collection& collection, json object) {
  const json* before = Find(collection, KeyOf(object));
  if (before == nullptr) {
    const json status = FieldAt(object, {"status"});
    json made = Create(collection, std::move(object)).body;
    if (status.is_null()) return made;
    made["status"] = status;
    return Keep(collection, std::move(made), 200).body;
  }
  for (const char* name : {"uid", "creationTimestamp"}) {
    object["metadata"][name] = (*before)["metadata"][name];
  }
  return Keep(collection, std::move(object), 200).body;
}

void ObjectStore::Remove(const Collection& collection, const ObjectKey& key) {
  if (const json* found = Find(collection, key)) Drop(collection, *found);
}

}  // namespace edl::kube
