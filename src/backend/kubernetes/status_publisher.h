#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "kube/client.h"
#include "kube/connection.h"

namespace edl::backend::kubernetes {

// Shows a job's state to whoever may read its ConfigMap: the newest text, not each one. What cannot
// be written now is tried again; nobody waits for it.
//
// Thread-safe.
class StatusPublisher {
 public:
  // Between two writes.
  static constexpr std::chrono::milliseconds kPause{1000};

  // `map` is there. `connection` outlives this.
  StatusPublisher(kube::Connection& connection, const kube::Timing& timing, kube::ObjectKey map);
  ~StatusPublisher();

  void Show(std::string status_json);
  // Blocks until the newest text is written, at most so long. False: it was not.
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
  bool hurry_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace edl::backend::kubernetes
