#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "reconciler/reconcile.h"

namespace edl::reconciler {

// The events about states of a job that were recorded, so that each is recorded once and not in
// every pass. It is small: of each subject it knows the last message of each reason.
//
// Confined: JobController guards it with its mutex.
class RecordedEvents {
 public:
  // Whether this event, which has a subject, is not the last one of its reason about its subject.
  bool IsNew(const JobEvent& event) const {
    const auto found = last_.find({event.subject, event.reason});
    return found == last_.end() || found->second != HashOf(event.message);
  }
  void Add(const JobEvent& event) { last_[{event.subject, event.reason}] = HashOf(event.message); }
  // Forgets the events about all other subjects.
  void KeepOnly(const std::set<std::string>& subjects) {
    std::erase_if(last_, [&](const auto& entry) { return !subjects.contains(entry.first.first); });
  }
  size_t size() const { return last_.size(); }

 private:
  static size_t HashOf(const std::string& message) { return std::hash<std::string>()(message); }

  // Subject and reason, and the hash of the last message.
  std::map<std::pair<std::string, std::string>, size_t> last_;
};

}  // namespace edl::reconciler
