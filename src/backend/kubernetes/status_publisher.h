#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "kube/client.h"
#include "kube/connection.h"

namespace edl::backend::kubernetes {

// Publishes the status of a job in a ConfigMap. It writes only the newest status; a failed write is
// retried in the background.
//
// Thread-safe.
class StatusPublisher {
 public:
  // The time between two writes.
  static constexpr std::chrono::milliseconds kInterval{1000};

  // The ConfigMap `map` exists. `connection` outlives this.
  StatusPublisher(kube::Connection& connection, const kube::Timing& timing, kube::ObjectKey map);
  ~StatusPublisher();

  // Returns without waiting for the write.
  void Publish(std::string status_json);
  // Blocks until the newest status is written, at most `timeout`. Returns false if it was not.
  bool Flush(std::chrono::milliseconds timeout);

 private:
  void Work(const std::stop_token& stop);

  const kube::Timing timing_;
  const kube::ObjectKey map_;
  kube::Client client_;

  Mutex mutex_;
  CondVar changed_;
  std::optional<std::string> unwritten_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;
  bool flushing_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace edl::backend::kubernetes
