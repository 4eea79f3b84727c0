#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "kube/connection.h"
#include "kube/transport.h"

namespace edl::kube {

// The body of one streamed response (a watch, a followed log). A thread of the stream receives the
// bytes and buffers them until they are read.
//
// Confined to its reader.
class ByteStream {
 public:
  // The stream fails when more than this many bytes are buffered.
  static constexpr size_t kMaxBuffered = size_t{256} << 20;

  // Sends the request and returns without waiting for the response. `connection` outlives this.
  ByteStream(Connection& connection, Request request, const std::stop_token& stop);
  // Cancels the request.
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Blocks until bytes have arrived, and returns all of them; an empty string means the end of the
  // stream. Fails with the server's error (kube/api_status.h), with the errors of
  // Transport::Stream, or with ResourceExhausted when the buffer overflowed. Every call after the
  // end or an error returns the same result.
  Result<std::string> Read();

 private:
  void Fetch(Connection& connection, const Request& request);
  // Returns false when the buffer is full.
  bool Buffer(std::string_view bytes);

  std::stop_source cancel_;
  std::stop_callback<std::function<void()>> linked_;

  Mutex mutex_;
  CondVar changed_;
  std::string buffer_ GUARDED_BY(mutex_);
  bool overflowed_ GUARDED_BY(mutex_) = false;
  std::optional<Status> ended_ GUARDED_BY(mutex_);

  std::thread fetcher_;  // last: it uses all of the above
};

}  // namespace edl::kube
