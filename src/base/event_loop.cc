#include "base/event_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <future>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"

namespace edl {
namespace {

static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT);

epoll_event EventFor(int fd, short events) {
  epoll_event event{};
  event.events = static_cast<uint32_t>(events);
  event.data.fd = fd;
  return event;
}

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::Make(const Clock& clock) {
  FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return Errno("creating an event loop");
  FileDescriptor doorbell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell.valid()) return Errno("creating an event loop");
  std::unique_ptr<EventLoop> loop(new EventLoop(clock, std::move(epoll), std::move(doorbell)));
  EDL_RETURN_IF_ERROR(
      loop->Add(loop->doorbell_.get(), POLLIN, [to = loop.get()] { to->RunPosted(); }));
  return loop;
}

EventLoop::EventLoop(const Clock& clock, FileDescriptor epoll, FileDescriptor doorbell)
    : clock_(clock), epoll_(std::move(epoll)), doorbell_(std::move(doorbell)) {}

Status EventLoop::Add(int fd, short events, OnReady on_ready) {
  epoll_event event = EventFor(fd, events);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    CHECK(errno == ENOSPC || errno == ENOMEM, "watching descriptor {}: errno {}", fd, errno);
    return Errno("watching a descriptor with epoll (the limit is fs.epoll.max_user_watches)");
  }
  waiting_[fd] = std::make_shared<OnReady>(std::move(on_ready));
  return Ok();
}

void EventLoop::Change(int fd, short events) {
  epoll_event event = EventFor(fd, events);
  const int failed = epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  CHECK(failed == 0, "watching descriptor {}: errno {}", fd, errno);
}

void EventLoop::Remove(int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  waiting_.erase(fd);
}

void EventLoop::Post(std::function<void()> work) {
  {
    const MutexLock lock(mutex_);
    posted_.push_back(std::move(work));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t rung = write(doorbell_.get(), &one, sizeof(one));
}

void EventLoop::RunPosted() {
  uint64_t rung = 0;
  [[maybe_unused]] const ssize_t got = read(doorbell_.get(), &rung, sizeof(rung));
  std::vector<std::function<void()>> posted;
  {
    const MutexLock lock(mutex_);
    posted.swap(posted_);
  }
  for (const auto& work : posted) work();
}

void EventLoop::CallAfter(Duration delay, std::function<void()> call) {
  timers_.emplace(clock_.Now() + delay, std::move(call));
}

int EventLoop::MillisecondsToNextTimer() const {
  if (timers_.empty()) return -1;
  const Duration left = timers_.begin()->first - clock_.Now();
  const auto rounded_up = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(rounded_up, 0, 60'000));
}

void EventLoop::CallTimers() {
  while (!timers_.empty() && timers_.begin()->first <= clock_.Now()) {
    const std::function<void()> call = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    call();
  }
}

void EventLoop::RunOnce() {
  std::array<epoll_event, 64> events;  // NOLINT: filled by epoll_wait
  const int ready = epoll_wait(epoll_.get(), events.data(), events.size(),
                               more_work_ ? 0 : MillisecondsToNextTimer());
  CHECK(ready >= 0 || errno == EINTR, "epoll_wait: errno {}", errno);
  for (int i = 0; i < ready; ++i) {
    // An earlier callback may have removed it.
    const auto found = waiting_.find(events[static_cast<size_t>(i)].data.fd);
    if (found == waiting_.end()) continue;
    const std::shared_ptr<OnReady> on_ready = found->second;
    (*on_ready)();
  }
  CallTimers();
  more_work_ = work_ && work_();
}

void EventLoop::Run() {
  while (!stopped_) RunOnce();
}

void EventLoop::Stop() {
  stopped_ = true;
  Post([] {});
}

LoopThread::LoopThread(std::unique_ptr<EventLoop> loop)
    : loop_(std::move(loop)), thread_([this] { loop_->Run(); }) {}

LoopThread::~LoopThread() {
  loop_->Stop();
  thread_.join();
}

void LoopThread::Run(const std::function<void()>& work) {
  std::promise<void> done;
  loop_->Post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace edl
