#include "backend/kubernetes/status_publisher.h"

#include <utility>

#include "backend/kubernetes/kubernetes_jobs.h"
#include "base/log.h"
#include "kube/resource.h"

namespace edl::backend::kubernetes {

StatusPublisher::StatusPublisher(kube::Connection& connection, const kube::Timing& timing,
                                 kube::ObjectKey map)
    : timing_(timing),
      map_(std::move(map)),
      client_(connection, timing, {.timeout = std::chrono::milliseconds(5'000), .tries = 1}),
      thread_([this](const std::stop_token& stop) { Work(stop); }) {}

StatusPublisher::~StatusPublisher() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  thread_.request_stop();
  changed_.NotifyAll();
}

void StatusPublisher::Publish(std::string status_json) {
  {
    const MutexLock lock(mutex_);
    unwritten_ = std::move(status_json);
  }
  changed_.NotifyAll();
}

bool StatusPublisher::Flush(std::chrono::milliseconds timeout) {
  // In real time, as all waits here: a condition variable does not wait on an injected clock.
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(mutex_);
  flushing_ = true;
  changed_.NotifyAll();
  while (unwritten_.has_value() || writing_) {
    if (!changed_.WaitUntil(mutex_, deadline)) break;
  }
  return !unwritten_.has_value() && !writing_;
}

void StatusPublisher::Work(const std::stop_token& stop) {
  while (true) {
    std::string text;
    {
      const MutexLock lock(mutex_);
      while (!unwritten_.has_value() && !ending_) changed_.Wait(mutex_);
      if (ending_) return;
      text = *std::exchange(unwritten_, std::nullopt);
      writing_ = true;
    }
    const Status written =
        client_.Patch(kube::kConfigMaps, map_, {{"data", {{kStatusKey, text}}}}, {}, stop).status();
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      // Retry this status, unless there is a newer one by now.
      if (!written.ok() && !unwritten_.has_value()) unwritten_ = std::move(text);
    }
    changed_.NotifyAll();
    if (!written.ok() && !stop.stop_requested()) {
      LOG_WARNING("cannot publish the job's status: {}; retrying", written.message());
    }
    const auto next = std::chrono::steady_clock::now() + kInterval;
    const MutexLock lock(mutex_);
    while (!ending_ && !(flushing_ && written.ok())) {
      if (!changed_.WaitUntil(mutex_, next)) break;
    }
  }
}

}  // namespace edl::backend::kubernetes
