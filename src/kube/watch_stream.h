#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "base/status.h"
#include "kube/byte_stream.h"
#include "kube/watch_frames.h"

namespace edl::kube {

// The events of one watch, in order.
//
// Confined.
class WatchStream {
 public:
  explicit WatchStream(std::unique_ptr<ByteStream> bytes) : bytes_(std::move(bytes)) {}

  // Blocks until the next event. nullopt: the server ended the watch, as it does every few minutes.
  // OutOfRange: the server no longer keeps the start version. DataLoss: the input is not a watch of
  // an API server. An ERROR event is returned as the error that it contains. Other errors are those
  // of ByteStream::Read.
  Result<std::optional<WatchEvent>> Next();

 private:
  std::unique_ptr<ByteStream> bytes_;
  WatchFrames frames_;
  std::deque<WatchEvent> parsed_;
};

}  // namespace edl::kube
