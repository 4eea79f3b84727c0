#include "ps_client/client_thread.h"

#include <cstdint>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"

namespace edl::ps_client {
namespace {

Status Closed() { return Cancelled("the client was closed"); }

}  // namespace

bool Pending::WaitFor(Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(mutex_);
  while (!status_.has_value()) {
    if (!over_.WaitUntil(mutex_, deadline)) return status_.has_value();
  }
  return true;
}

Status Pending::status() {
  const MutexLock lock(mutex_);
  CHECK(status_.has_value(), "the operation is not done");
  return *status_;
}

void Pending::Finish(Status status) {
  const MutexLock lock(mutex_);
  status_ = std::move(status);
  over_.NotifyAll();
}

ClientThread::ClientThread(std::unique_ptr<ParameterClient> client, std::atomic<bool>& stop)
    : stop_(stop),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      client_(std::move(client)),
      thread_([this] { Run(); }) {
  CHECK(wake_.valid(), "cannot create an eventfd");
}

ClientThread::~ClientThread() { Stop(); }

std::shared_ptr<Pending> ClientThread::Start(Begin begin, End end) {
  return Ask({.begin = std::move(begin), .end = std::move(end)});
}

std::shared_ptr<Pending> ClientThread::Call(Act act) { return Ask({.act = std::move(act)}); }

std::shared_ptr<Pending> ClientThread::Ask(Asked asked) {
  asked.pending = std::make_shared<Pending>();
  std::shared_ptr<Pending> pending = asked.pending;
  {
    const MutexLock lock(mutex_);
    if (stopped_) {
      pending->Finish(Closed());
      return pending;
    }
    asked_.push_back(std::move(asked));
  }
  Wake();
  return pending;
}

void ClientThread::Wake() {
  const uint64_t one = 1;
  // Fails only if the eventfd is readable already.
  (void)!write(wake_.get(), &one, sizeof(one));
}

void ClientThread::Stop() {
  stop_ = true;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  Wake();
  const MutexLock lock(joining_);
  if (thread_.joinable()) thread_.join();
}

void ClientThread::Run() {
  while (!stop_) {
    bool has_moved = TakeAsked();
    client_->Move();
    has_moved = EndDone() || has_moved;
    if (has_moved) continue;
    client_->WaitToMove(wake_.get());
    uint64_t times = 0;
    (void)!read(wake_.get(), &times, sizeof(times));
  }
  // From here on the memory of operations is not accessed.
  client_.reset();
  for (const Asked& asked : under_way_) asked.pending->Finish(Closed());
  under_way_.clear();
  std::deque<Asked> never;
  {
    const MutexLock lock(mutex_);
    never.swap(asked_);
  }
  for (const Asked& asked : never) asked.pending->Finish(Closed());
}

bool ClientThread::TakeAsked() {
  std::deque<Asked> taken;
  {
    const MutexLock lock(mutex_);
    taken.swap(asked_);
  }
  for (Asked& asked : taken) {
    if (asked.act != nullptr) {
      asked.pending->Finish(asked.act(*client_));
      continue;
    }
    asked.ticket = asked.begin(*client_);
    under_way_.push_back(std::move(asked));
  }
  return !taken.empty();
}

bool ClientThread::EndDone() {
  const size_t before = under_way_.size();
  for (auto it = under_way_.begin(); it != under_way_.end();) {
    if (!client_->IsDone(it->ticket)) {
      ++it;
      continue;
    }
    Status status = it->end(*client_, it->ticket);
    it->pending->Finish(std::move(status));
    it = under_way_.erase(it);
  }
  return under_way_.size() != before;
}

}  // namespace edl::ps_client
