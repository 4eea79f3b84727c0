#include "backend/event_dispatcher.h"

#include <iterator>
#include <utility>

namespace edl::backend {

EventDispatcher::EventDispatcher() : thread_([this] { Work(); }) {}

EventDispatcher::~EventDispatcher() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void EventDispatcher::Watch(Watcher watcher, std::vector<job::ReplicaEvent> first) {
  {
    const MutexLock lock(mutex_);
    watcher_ = std::move(watcher);
    pending_.assign(std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
  }
  changed_.NotifyAll();
}

void EventDispatcher::Notify(job::ReplicaEvent event) {
  {
    const MutexLock lock(mutex_);
    if (watcher_ == nullptr) return;
    pending_.push_back(std::move(event));
  }
  changed_.NotifyAll();
}

void EventDispatcher::Work() {
  while (true) {
    Watcher watcher;
    job::ReplicaEvent event;
    {
      const MutexLock lock(mutex_);
      while (pending_.empty() && !ending_) changed_.Wait(mutex_);
      if (ending_) return;
      watcher = watcher_;
      event = std::move(pending_.front());
      pending_.pop_front();
    }
    watcher(event);
  }
}

}  // namespace edl::backend
