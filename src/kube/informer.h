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

// Called sequentially on the thread of Informer::Run. Each may be empty.
struct InformerCallbacks {
  std::function<void(const Object& now)> on_added;
  std::function<void(const Object& before, const Object& now)> on_updated;
  // Receives the last known state. Also called for an object whose deletion was missed, and for one
  // that was replaced by another of the same name.
  std::function<void(const Object& last)> on_deleted;
  // Called once, after on_added was called for every object of the first list.
  std::function<void()> on_synced;
  // Called each time a list or watch fails. The informer continues to retry.
  std::function<void(const Status&)> on_error;
};

// A local copy of all objects in a scope, which follows the server. For each uid the callbacks are
// called in this order: added, any number of updates, deleted; nothing after that. A state that the
// server repeats is reported once. Objects have no managedFields.
//
// Thread-safe.
class Informer {
 public:
  // Owned by the store and by its readers.
  using ObjectPtr = std::shared_ptr<const Object>;

  // `connection` outlives this.
  Informer(Connection& connection, Scope scope, const Timing& timing, InformerCallbacks callbacks,
           const Reflector::Options& options = {});

  // Blocks until `stop` is requested. Call it once.
  void Run(const std::stop_token& stop);

  // Whether the store contains every object of the first list.
  bool synced() const;
  // Returns null if the object does not exist.
  ObjectPtr Get(const ObjectKey& key) const;
  std::vector<ObjectPtr> List() const;

 private:
  void Replace(ObjectList list);
  void Apply(WatchEvent::Kind kind, Object object);
  // Each changes the store, then calls a callback.
  void Put(Object object);
  void Remove(const Object& last);

  const InformerCallbacks callbacks_;
  Reflector reflector_;

  mutable Mutex mutex_;
  std::map<ObjectKey, ObjectPtr> objects_ GUARDED_BY(mutex_);
  bool synced_ GUARDED_BY(mutex_) = false;
};

}  // namespace edl::kube
