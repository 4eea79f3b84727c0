#include "kube/byte_stream.h"

#include <utility>

#include "kube/api_status.h"

namespace edl::kube {

ByteStream::ByteStream(Connection& connection, Request request, const std::stop_token& stop)
    : linked_(stop, [this] { give_up_.request_stop(); }) {
  fetcher_ = std::thread(
      [this, &connection, request = std::move(request)] { Fetch(connection, request); });
}

ByteStream::~ByteStream() {
  give_up_.request_stop();
  fetcher_.join();
}

void ByteStream::Fetch(Connection& connection, const Request& request) {
  const auto response = connection.Stream(
      request, [this](std::string_view bytes) { return Keep(bytes); }, give_up_.get_token());
  const MutexLock lock(mutex_);
  if (overrun_) {
    ended_ = ResourceExhausted("{} {}: {} bytes wait for a reader that does not come",
                               request.method, request.path, waiting_.size());
  } else {
    ended_ = response.ok() ? StatusOf(*response) : response.status();
  }
  changed_.NotifyAll();
}

bool ByteStream::Keep(std::string_view bytes) {
  const MutexLock lock(mutex_);
  waiting_ += bytes;
  overrun_ = waiting_.size() > kMostWaiting;
  changed_.NotifyAll();
  return !overrun_;
}

Result<std::string> ByteStream::Read() {
  const MutexLock lock(mutex_);
  while (waiting_.empty() && !ended_) changed_.Wait(mutex_);
  if (!waiting_.empty()) return std::exchange(waiting_, {});
  if (!ended_->ok()) return *ended_;
  return std::string();
}

}  // namespace edl::kube
