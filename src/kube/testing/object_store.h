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

// What an API server answers.
struct StoreReply {
  int status = 200;
  nlohmann::json body;
};

// A refusal, as an API server words it.
StoreReply Refuse(int status, const std::string& reason, const std::string& message);

// Whether an object is one of those selected. Knows all forms of label selectors, and equality of
// any field.
bool Selects(const Selector& selector, const nlohmann::json& object);

// Where objects are: "/api/v1/pods", whatever their namespace.
using Collection = std::string;

// The objects of an API server, with the rules by which they change, and a record of all changes.
// Every change has a version of its own.
//
// Confined.
class ObjectStore {
 public:
  struct Change {
    int64_t version = 0;
    Collection collection;
    nlohmann::json before;  // null: there was none
    nlohmann::json now;     // the last state, if it was deleted
    bool deleted = false;
  };

  // The verbs of the API; `kind` names the object in refusals.
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
  // `next`: the continue token of the page before, or empty. `limit` 0: all.
  StoreReply List(const Collection& collection, const std::string& ns, const Selector& selector,
                  int limit, const std::string& next) const;

  // What happens behind a client's back: the object is so from now on, or is no more.
  nlohmann::json Put(const Collection& collection, nlohmann::json object);
  void Remove(const Collection& collection, const ObjectKey& key);

  int64_t version() const { return version_; }
  const std::vector<Change>& changes() const { return changes_; }
  // Forgets all versions before this one: lists and watches cannot go on from them.
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
  // Gives it a version, keeps it, and records the change. Removes one that has nothing to wait for.
  StoreReply Keep(const Collection& collection, nlohmann::json object, int status);
  void Drop(const Collection& collection, nlohmann::json object);

  std::map<Collection, Objects> objects_;
  std::vector<Change> changes_;
  int64_t version_ = 100;
  int64_t compacted_ = 0;
  int made_ = 0;
};

}  // namespace edl::kube
