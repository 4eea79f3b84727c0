#include "backend/testing/event_recorder.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing/await.h"

namespace edl::backend {
namespace {

std::string_view NameOf(job::ReplicaEvent::Kind kind) {
  switch (kind) {
    case job::ReplicaEvent::Kind::kPending:
      return "pending";
    case job::ReplicaEvent::Kind::kRunning:
      return "running";
    case job::ReplicaEvent::Kind::kExited:
      return "exited";
    case job::ReplicaEvent::Kind::kSynced:
      return "synced";
  }
  return "?";
}

std::string Describe(const job::ReplicaEvent& event) {
  return fmt::format("{} {} {}{}", NameOf(event.kind), event.name, event.reason,
                     event.cause.message);
}

}  // namespace

std::function<void(const job::ReplicaEvent&)> EventRecorder::Watcher() {
  return [this](const job::ReplicaEvent& event) {
    const MutexLock lock(mutex_);
    events_.push_back(event);
    changed_.NotifyAll();
  };
}

std::optional<job::ReplicaEvent> EventRecorder::Await(job::ReplicaEvent::Kind kind,
                                                      const std::string& name) {
  const MutexLock lock(mutex_);
  const auto find = [&]() REQUIRES(mutex_) {
    return std::find_if(events_.begin(), events_.end(), [&](const job::ReplicaEvent& event) {
      return event.kind == kind && event.name == name;
    });
  };
  const Status came = edl::Await(
      mutex_, changed_, fmt::format("the event {}", Describe({.name = name, .kind = kind})),
      [&]() REQUIRES(mutex_) { return find() != events_.end(); }, kTimeout);
  if (came.ok()) return *find();
  std::string all;
  for (const job::ReplicaEvent& event : events_) all += "\n  " + Describe(event);
  ADD_FAILURE() << came.message() << "; the events were:" << all;
  return std::nullopt;
}

std::vector<job::ReplicaEvent> EventRecorder::Events() const {
  const MutexLock lock(mutex_);
  return events_;
}

}  // namespace edl::backend
