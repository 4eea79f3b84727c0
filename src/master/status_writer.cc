#include "master/status_writer.h"

#include <utility>

namespace edl::master {

StatusWriter::StatusWriter(Write write) : write_(std::move(write)), thread_([this] { Run(); }) {}

StatusWriter::~StatusWriter() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void StatusWriter::Update(job::JobView view, Durability durability) {
  const MutexLock lock(mutex_);
  next_ = std::move(view);
  if (durability == Durability::kDurable) durability_ = durability;
  changed_.NotifyAll();
}

void StatusWriter::Flush() {
  const MutexLock lock(mutex_);
  while (next_.has_value() || writing_) changed_.Wait(mutex_);
}

void StatusWriter::Run() {
  while (true) {
    job::JobView view;
    Durability durability = Durability::kBestEffort;
    {
      const MutexLock lock(mutex_);
      while (!next_.has_value() && !ending_) changed_.Wait(mutex_);
      if (!next_.has_value()) return;
      view = std::move(*next_);
      next_.reset();
      durability = std::exchange(durability_, Durability::kBestEffort);
      writing_ = true;
    }
    write_(view, durability);
    const MutexLock lock(mutex_);
    writing_ = false;
    changed_.NotifyAll();
  }
}

}  // namespace edl::master
