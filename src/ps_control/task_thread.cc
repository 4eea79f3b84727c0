#include "ps_control/task_thread.h"

#include <utility>

namespace edl::ps_control {

TaskThread::TaskThread() : thread_([this] { RunTasks(); }) {}

TaskThread::~TaskThread() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void TaskThread::Run(std::function<void()> task) {
  const MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.NotifyAll();
}

void TaskThread::RunTasks() {
  while (true) {
    std::function<void()> task;
    {
      const MutexLock lock(mutex_);
      while (tasks_.empty() && !stop_) changed_.Wait(mutex_);
      if (stop_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace edl::ps_control
