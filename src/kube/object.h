#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "kube/resource.h"

namespace edl::kube {

// Values of an answer of the API server below this level are replaced by null. A user may store an
// object that is nested that deep, and it must not hide the others of its list. A list has two
// levels more than its objects.
inline constexpr int kDeepestAnswer = kDeepestJson + 2;

// Identifies an object among those of its kind.
struct ObjectKey {
  std::string ns;  // empty: a cluster-scoped object
  std::string name;

  auto operator<=>(const ObjectKey&) const = default;
};

// An owner of an object. Kubernetes deletes an object when all of its owners are deleted.
struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;

  bool operator==(const OwnerReference&) const = default;
};

// An API object with all of its fields, including those unknown to this program: reading, changing
// and writing an object loses nothing down to kDeepestAnswer. A missing field, or one with an
// unexpected type, reads as empty.
//
// A value. Reading it from several threads is safe.
class Object {
 public:
  using Labels = std::map<std::string, std::string>;

  Object() : fields_(nlohmann::json::object()) {}
  // A value that is not a JSON object becomes an empty object.
  explicit Object(nlohmann::json fields);
  // A new object, to be filled in and created.
  Object(const Resource& resource, const ObjectKey& key);
  // Parses an answer of the API server, down to kDeepestAnswer. DataLoss: the text is not a JSON
  // object.
  static Result<Object> Parse(std::string_view text);

  std::string kind() const;
  ObjectKey key() const { return {ns(), name()}; }
  std::string name() const;
  std::string ns() const;
  std::string uid() const;
  std::string resource_version() const;  // opaque: compare for equality only
  Labels labels() const;
  Labels annotations() const;
  std::optional<std::string> label(const std::string& name) const;
  std::vector<OwnerReference> owners() const;
  std::optional<WallTime> creation_time() const;
  // When the deletion was requested or the grace period ends. The object may exist for long after
  // that.
  std::optional<WallTime> deletion_time() const;
  bool deleting() const;

  void set_label(const std::string& name, const std::string& value);
  void set_annotation(const std::string& name, const std::string& value);
  void set_resource_version(const std::string& version);
  void AddOwner(const OwnerReference& owner);

  // A reference to this object, for the objects that it owns. REQUIRES: the object was returned by
  // the API server.
  OwnerReference AsOwner() const;

  // All fields; always a JSON object.
  const nlohmann::json& fields() const { return fields_; }
  nlohmann::json& fields() { return fields_; }
  // The metadata. Created if it is missing or not an object.
  nlohmann::json& metadata();

  bool operator==(const Object&) const = default;

 private:
  nlohmann::json fields_;
};

}  // namespace edl::kube

// "namespace/name", or "name" for a cluster-scoped object.
template <>
struct fmt::formatter<edl::kube::ObjectKey> : fmt::formatter<std::string> {
  auto format(const edl::kube::ObjectKey& key, fmt::format_context& context) const {
    return fmt::formatter<std::string>::format(key.ns.empty() ? key.name : key.ns + "/" + key.name,
                                               context);
  }
};
