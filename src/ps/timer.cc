#include "ps/timer.h"

#include <cstdint>
#include <utility>

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace edl::ps {

Result<std::unique_ptr<Timer>> Timer::Make(EventLoop& loop, std::function<void()> on_time) {
  FileDescriptor fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd.valid()) return Errno("cannot create a timer");
  std::unique_ptr<Timer> timer(new Timer(loop, std::move(fd)));
  EDL_RETURN_IF_ERROR(
      loop.Add(timer->fd_.get(), POLLIN, [fd = timer->fd_.get(), on_time = std::move(on_time)] {
        uint64_t times = 0;
        if (read(fd, &times, sizeof(times)) > 0) on_time();
      }));
  return timer;
}

Timer::~Timer() { loop_.Remove(fd_.get()); }

void Timer::Set(Duration first, Duration every) {
  const auto spec = [](Duration time) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    return timespec{.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
  };
  const itimerspec times{.it_interval = spec(every), .it_value = spec(first)};
  timerfd_settime(fd_.get(), 0, &times, nullptr);
}

}  // namespace edl::ps
