#include "kube/informer.h"

#include <set>
#include <utility>

namespace edl::kube {

using Kind = WatchEvent::Kind;

Informer::Informer(Connection& connection, Scope scope, const Timing& timing,
                   InformerCallbacks callbacks, const Reflector::Options& options)
    : callbacks_(std::move(callbacks)),
      reflector_(connection, std::move(scope), timing,
                 {.on_list = [this](ObjectList list) { Replace(std::move(list)); },
                  .on_event = [this](Kind kind, Object object) { Apply(kind, std::move(object)); },
                  .on_error = callbacks_.on_error},
                 options) {}

void Informer::Run(const std::stop_token& stop) { reflector_.Run(stop); }

bool Informer::synced() const {
  const MutexLock lock(mutex_);
  return synced_;
}

Informer::ObjectPtr Informer::Get(const ObjectKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<Informer::ObjectPtr> Informer::List() const {
  const MutexLock lock(mutex_);
  std::vector<ObjectPtr> out;
  out.reserve(objects_.size());
  for (const auto& [key, object] : objects_) out.push_back(object);
  return out;
}

void Informer::Replace(ObjectList list) {
  std::set<ObjectKey> listed;
  for (const Object& object : list.items) listed.insert(object.key());
  // Deletions first: a new object may use a resource that a deleted one had.
  for (const ObjectPtr& object : List()) {
    if (!listed.contains(object->key())) Remove(*object);
  }
  for (Object& object : list.items) Put(std::move(object));
  {
    const MutexLock lock(mutex_);
    if (synced_) return;
    synced_ = true;
  }
  if (callbacks_.on_synced) callbacks_.on_synced();
}

void Informer::Apply(Kind kind, Object object) {
  if (kind != Kind::kDeleted) return Put(std::move(object));
  object.metadata().erase("managedFields");
  const ObjectPtr known = Get(object.key());
  // Ignores the deletion of an object that was already replaced by another of the same name.
  if (known != nullptr && known->uid() == object.uid()) Remove(object);
}

void Informer::Put(Object object) {
  object.metadata().erase("managedFields");  // half of the size, and unused
  const ObjectKey key = object.key();
  ObjectPtr before = Get(key);
  if (before != nullptr && before->uid() != object.uid()) {
    Remove(*before);
    before = nullptr;
  }
  if (before != nullptr && before->resource_version() == object.resource_version()) return;
  const auto now = std::make_shared<const Object>(std::move(object));
  {
    const MutexLock lock(mutex_);
    objects_[key] = now;
  }
  if (before == nullptr) {
    if (callbacks_.on_added) callbacks_.on_added(*now);
  } else if (callbacks_.on_updated) {
    callbacks_.on_updated(*before, *now);
  }
}

void Informer::Remove(const Object& last) {
  {
    const MutexLock lock(mutex_);
    objects_.erase(last.key());
  }
  if (callbacks_.on_deleted) callbacks_.on_deleted(last);
}

}  // namespace edl::kube
