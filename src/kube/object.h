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
#include "base/status.h"
#include "kube/resource.h"

namespace edl::kube {

// Which object, among those of its kind.
struct ObjectKey {
  std::string ns;  // empty: of the cluster
  std::string name;

  auto operator<=>(const ObjectKey&) const = default;
};

// An object that goes when its owners are gone.
struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;

  bool operator==(const OwnerReference&) const = default;
};

// One object of the API with all of its fields, also those that this program does not know: what is
// read, changed and written back loses nothing. A missing field, or one of another type than the
// API's, reads as empty.
//
// A value. Reading it from several threads is safe.
class Object {
 public:
  using Labels = std::map<std::string, std::string>;

  Object() : fields_(nlohmann::json::object()) {}
  // What is no JSON object becomes an empty one.
  explicit Object(nlohmann::json fields);
  // A new one, to be filled in and created.
  Object(const Resource& resource, const ObjectKey& key);
  // DataLoss: no JSON object.
  static Result<Object> Parse(std::string_view text);

  std::string kind() const;
  ObjectKey key() const { return {ns(), name()}; }
  std::string name() const;
  std::string ns() const;
  std::string uid() const;
  std::string resource_version() const;  // opaque: only equality means something
  Labels labels() const;
  Labels annotations() const;
  std::optional<std::string> label(const std::string& name) const;
  std::vector<OwnerReference> owners() const;
  std::optional<WallTime> creation_time() const;
  // When it was told to go, or when its grace ends; it may be there for long yet.
  std::optional<WallTime> deletion_time() const;
  bool deleting() const;

  void set_label(const std::string& name, const std::string& value);
  void set_annotation(const std::string& name, const std::string& value);
  void set_resource_version(const std::string& version);
  void AddOwner(const OwnerReference& owner);

  // A reference to this object, for what it is to own. REQUIRES: it came from the API server.
  OwnerReference AsOwner() const;

  // All of it; always a JSON object.
  const nlohmann::json& fields() const { return fields_; }
  nlohmann::json& fields() { return fields_; }
  // metadata, made where it is missing or no object.
  nlohmann::json& metadata();

  bool operator==(const Object&) const = default;

 private:
  nlohmann::json fields_;
};

}  // namespace edl::kube

// "namespace/name", or "name" for an object of the cluster.
template <>
struct fmt::formatter<edl::kube::ObjectKey> : fmt::formatter<std::string> {
  auto format(const edl::kube::ObjectKey& key, fmt::format_context& context) const {
    return fmt::formatter<std::string>::format(key.ns.empty() ? key.name : key.ns + "/" + key.name,
                                               context);
  }
};
