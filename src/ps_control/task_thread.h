#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace edl::ps_control {

// Runs tasks one after the other on a thread of its own. Thread-safe.
class TaskThread {
 public:
  TaskThread();
  // Waits for the task that is running. Drops those that have not started.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  void Run(std::function<void()> task);

 private:
  void RunTasks();

  Mutex mutex_;
  CondVar changed_;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace edl::ps_control
