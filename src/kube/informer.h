#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <vector>

#include "base/mutex.h"
#include "kube/object.h"
#include "kube/reflector.h"

namespace edl::kube {

// Called one after the other on the thread of Informer::Run. Any of them may be empty.
struct InformerCalls {
  std::function<void(const Object& now)> on_added;
  std::function<void(const Object& before, const Object& now)> on_updated;
  // The last state known. An object that went unseen, and one whose name another has taken, is told
  // as deleted too.
  std::function<void(const Object& last)> on_deleted;
  // Once: all that there was at the start has been told as added.
  std::function<void()> on_synced;
  // What keeps it from seeing: told each time it fails, while it goes on trying.
  std::function<void(const Status&)> on_trouble;
};

// A copy of all objects of a scope that follows the server's. For one object the calls say: added,
// any number of updates, deleted; under the same uid never again. A state that is told twice by the
// server is told once. Objects come without their managedFields.
//
// Thread-safe.
class Informer {
 public:
  // The store's and that of whoever reads it.
  using ObjectPtr = std::shared_ptr<const Object>;

  // `connection` outlives this.
  Informer(Connection& connection, Scope scope, const Timing& timing, InformerCalls calls,
           const Reflector::Options& options = {});

  // Blocks until told to stop. Once.
  void Run(const std::stop_token& stop);

  // Whether all that there was at the start is in it.
  bool synced() const;
  // Null: there is none.
  ObjectPtr Get(const ObjectKey& key) const;
  std::vector<ObjectPtr> List() const;

 private:
  void Replace(ObjectList list);
  void Apply(WatchEvent::Kind kind, Object object);
  // Each changes the store, then tells.
  void Put(Object object);
  void Remove(const Object& last);

  const InformerCalls calls_;
  Reflector reflector_;

  mutable Mutex mutex_;
  std::map<ObjectKey, ObjectPtr> objects_ GUARDED_BY(mutex_);
  bool synced_ GUARDED_BY(mutex_) = false;
};

}  // namespace edl::kube
