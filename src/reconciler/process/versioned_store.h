#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/object.h"

namespace edl::reconciler {

// The number in a resource version. Kubernetes defines that versions of one resource can be
// compared as numbers. nullopt: the server does not follow that rule.
inline std::optional<uint64_t> VersionNumber(const std::string& version) {
  uint64_t number = 0;
  const char* const end = version.data() + version.size();
  const auto parsed = std::from_chars(version.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

// The objects of one kind, each reduced to a T, as the newest of two sources has them: the watch,
// which follows the server with a delay, and the answers to this process's own writes. So a
// controller never plans with a state that is older than its own writes.
//
// Confined: JobCache guards it with its mutex.
template <typename T>
class VersionedStore {
 public:
  struct Entry {
    std::string uid;
    uint64_t version = 0;
    T value;
  };
  using Entries = std::map<kube::ObjectKey, Entry>;

  // The watch has reported the object. Returns whether the stored value changed.
  bool Watched(const kube::ObjectKey& key, const std::string& uid, const std::string& version,
               T value) {
    const uint64_t number = VersionNumber(version).value_or(0);
    seen_ = std::max(seen_, number);
    const auto known = entries_.find(key);
    if (known != entries_.end() && known->second.version > number) return false;
    return Set(key, {uid, number, std::move(value)});
  }

  // The watch has reported that the object is gone. Returns whether it was stored.
  bool WatchedDeletion(const kube::ObjectKey& key, const std::string& uid,
                       const std::string& version) {
    seen_ = std::max(seen_, VersionNumber(version).value_or(0));
    const auto known = entries_.find(key);
    if (known == entries_.end() || known->second.uid != uid) return false;
    entries_.erase(known);
    return true;
  }

  // A list of the most recent state has this version. If a newer one was seen before, the server
  // was restored from a backup, and everything that is stored counts as older than the list. Call
  // it before Watched is called with what is listed. Returns the objects that are not in `listed`,
  // which are gone.
  std::vector<std::pair<kube::ObjectKey, Entry>> Listed(const std::set<kube::ObjectKey>& listed,
                                                        const std::string& version) {
    const uint64_t number = VersionNumber(version).value_or(0);
    if (number != 0 && number < seen_) StartAgain();
    seen_ = std::max(seen_, number);
    std::vector<std::pair<kube::ObjectKey, Entry>> gone;
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      // One that this process created after the list was made is not in the list.
      const bool newer = number != 0 && entry->second.version > number;
      if (listed.contains(entry->first) || newer) {
        ++entry;
      } else {
        gone.emplace_back(entry->first, std::move(entry->second));
        entry = entries_.erase(entry);
      }
    }
    return gone;
  }

  // This process has written the object. It is ignored if the watch has already reported this state
  // or a later one, maybe the deletion of the object.
  bool Wrote(const kube::ObjectKey& key, const std::string& uid, const std::string& version,
             T value) {
    const auto number = VersionNumber(version);
    if (!number || *number <= seen_) return false;
    return Set(key, {uid, *number, std::move(value)});
  }

  const Entry* Find(const kube::ObjectKey& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }
  Entry* Find(const kube::ObjectKey& key) {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }
  const Entries& entries() const { return entries_; }

 private:
  void StartAgain() {
    seen_ = 0;
    for (auto& [key, entry] : entries_) entry.version = 0;
  }

  bool Set(const kube::ObjectKey& key, Entry entry) {
    auto [known, added] = entries_.try_emplace(key, entry);
    if (added) return true;
    const bool changed = known->second.uid != entry.uid || !(known->second.value == entry.value);
    known->second = std::move(entry);
    return changed;
  }

  Entries entries_;
  uint64_t seen_ = 0;  // the newest version that the watch has reported
};

}  // namespace edl::reconciler
