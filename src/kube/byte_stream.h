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

// An answer that is read as it comes, at the reader's pace: what has come and was not read waits
// here.
//
// Confined to its reader; has a thread of its own, which waits for the bytes.
class ByteStream {
 public:
  // More than this waiting for its reader, and the stream ends.
  static constexpr size_t kMostWaiting = size_t{256} << 20;

  // Asks at once and does not wait. `connection` outlives this.
  ByteStream(Connection& connection, Request request, const std::stop_token& stop);
  // Gives the rest up.
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Blocks until something has come, and returns all of it; empty: the stream has ended. Errors are
  // the server's refusal in our codes, those of Transport::Stream, and ResourceExhausted for a
  // reader that is far behind. Once it has ended it stays so.
  Result<std::string> Read();

 private:
  void Fetch(Connection& connection, const Request& request);
  bool Keep(std::string_view bytes);

  std::stop_source give_up_;
  std::stop_callback<std::function<void()>> linked_;

  Mutex mutex_;
  CondVar changed_;
  std::string waiting_ GUARDED_BY(mutex_);
  bool overrun_ GUARDED_BY(mutex_) = false;
  std::optional<Status> ended_ GUARDED_BY(mutex_);

  std::thread fetcher_;  // last: it uses all of the above
};

}  // namespace edl::kube
