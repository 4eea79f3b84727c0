#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "kube/call_options.h"
#include "kube/object.h"

namespace edl::kube {

// The answer of an API server.
struct StoreReply {
  int status = 200;
  nlohmann::json body;
};

// An error in the format of an API server.
StoreReply Refuse(int status, const std::string& reason, const std::string& message);

// Whether the selector matches the object. Supports all forms of label selectors, and equality of
// any field.
bool Selects(const Selector& selector, const nlohmann::json& object);

// The path of all objects of a kind, across namespaces: "/api/v1/pods".
using Collection = std::string;

// The objects of an API server, the rules by which they change, and a history of all changes. Every
// change has its own version.
//
// Confined.
class ObjectStore {
 public:
  struct Change {
    int64_t version = 0;
    Collection collection;
    nlohmann::json before;  // null: the object did not exist
    nlohmann::json now;     // the last state, if the object was deleted
    bool deleted = false;
  };

  // The verbs of the API.
  StoreReply Create(const Collection& collection, nlohmann::json object);
  StoreReply Get(const Collection& collection, const ObjectKey& key) const;
  StoreReply Replace(const Collection& collection, const ObjectKey& key, nlohmann::json object,
                     std::string_view subresource);
  StoreReply Patch(const Collection& collection, const ObjectKey& key, PatchType type,
                   const nlohmann::json& patch, std::string_view subresource);
  StoreReply Delete(const Collection& collection, const ObjectKey& key,
                    const nlohmann::json& options);
  StoreReply DeleteMany(const Collection& collection, const std::string& ns,
                        const Selector& selector, const nlohmann::json& options);
  // `next`: the continue token of the previous page, or empty. `limit` 0: no limit.
  StoreReply List(const Collection& collection, const std::string& ns, const Selector& selector,
                  int limit, const std::string& next) const;

  // Changes made by other clients: store or delete an object unconditionally.
  nlohmann::json Put(const Collection& collection, nlohmann::json object);
  void Remove(const Collection& collection, const ObjectKey& key);

  int64_t version() const { return version_; }
  const std::vector<Change>& changes() const { return changes_; }
  // Forgets the versions before the current one: lists and watches cannot continue from them.
  void Compact() { compacted_ = version_; }
  bool forgotten(int64_t version) const { return version < compacted_; }
  // Removes the last change from the history. A watch cannot start from a version before it: a real
  // server never leaves a change out of a watch that it accepts.
  void HideLastChange() {
    changes_.pop_back();
    Compact();
  }

 private:
  using Objects = std::map<ObjectKey, nlohmann::json>;

  const nlohmann::json* Find(const Collection& collection, const ObjectKey& key) const;
  // Assigns a version, stores the object and records the change. Removes the object if its deletion
  // was requested and nothing delays it.
  StoreReply Keep(const Collection& collection, nlohmann::json object, int status);
  void Drop(const Collection& collection, nlohmann::json object);

  std::map<Collection, Objects> objects_;
  std::vector<Change> changes_;
  int64_t version_ = 100;
  int64_t compacted_ = 0;
  int made_ = 0;
};

}  // namespace edl::kube
