#include "kube/byte_stream.h"

#include <utility>

#include "kube/api_status.h"

namespace edl::kube {

ByteStream::ByteStream(Connection& connection, Request request, const std::stop_token& stop)
    : linked_(stop, [this] { cancel_.request_stop(); }) {
  fetcher_ = std::thread(
      [this, &connection, request = std::move(request)] { Fetch(connection, request); });
}

ByteStream::~ByteStream() {
  cancel_.request_stop();
  fetcher_.join();
}

void ByteStream::Fetch(Connection& connection, const Request& request) {
  const auto response = connection.Stream(
      request, [this](std::string_view bytes) { return Buffer(bytes); }, cancel_.get_token());
  const MutexLock lock(mutex_);
  if (overflowed_) {
    ended_ =
        ResourceExhausted("{} {}: the stream ended because {} bytes were received and not read",
                          request.method, request.path, buffer_.size());
  } else {
    ended_ = response.ok() ? StatusOf(*response) : response.status();
  }
  changed_.NotifyAll();
}

bool ByteStream::Buffer(std::string_view bytes) {
  const MutexLock lock(mutex_);
  buffer_ += bytes;
  overflowed_ = buffer_.size() > kMaxBuffered;
  changed_.NotifyAll();
  return !overflowed_;
}

Result<std::string> ByteStream::Read() {
  const MutexLock lock(mutex_);
  while (buffer_.empty() && !ended_) changed_.Wait(mutex_);
  if (!buffer_.empty()) return std::exchange(buffer_, {});
  if (!ended_->ok()) return *ended_;
  return std::string();
}

}  // namespace edl::kube
