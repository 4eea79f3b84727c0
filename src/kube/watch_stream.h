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

  // Blocks until there is one; nullopt: the server ended the watch, as it does every few minutes.
  // OutOfRange: the version to start from is no longer kept. DataLoss: not what an API server
  // sends. Other errors are those of ByteStream::Read. An ERROR event of the server comes as the
  // error that it means.
  Result<std::optional<WatchEvent>> Next();

 private:
  std::unique_ptr<ByteStream> bytes_;
  WatchFrames frames_;
  std::deque<WatchEvent> waiting_;
};

}  // namespace edl::kube
