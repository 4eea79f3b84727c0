#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <sys/uio.h>

#include "base/status.h"
#include "wire/stream.h"

namespace edl::wire {

// Waits until the stream's descriptor is ready, and tells it so. False: it was not for 30 s.
bool Await(Stream& stream, Stream::Interest interest);
bool IsReady(const Stream& stream, Stream::Interest interest);

// Bytes of which each is known by its place in the stream.
class Pattern {
 public:
  Pattern();
  // REQUIRES: size <= kMost.
  std::span<const std::byte> At(uint64_t position, size_t size) const;

  static constexpr size_t kMost = size_t{12} << 20;

 private:
  std::vector<std::byte> bytes_;
};

// How many bytes go through a call: mostly few.
using PickSize = size_t (*)(std::mt19937_64& random);

// One direction of a stream, from the end that sends: the pattern, in random pieces.
class Sender {
 public:
  Sender(Stream& stream, uint64_t total, PickSize pick, uint64_t seed)
      : stream_(stream), total_(total), pick_(pick), random_(seed) {}

  // Calls Write once.
  Result<size_t> Step();
  bool IsDone() const { return sent_ == total_; }
  uint64_t sent() const { return sent_; }

 private:
  Stream& stream_;
  const uint64_t total_;
  const PickSize pick_;
  const Pattern pattern_;
  std::mt19937_64 random_;
  uint64_t sent_ = 0;
};

// The end that receives, into random buffers. What is not the pattern is DataLoss.
class Receiver {
 public:
  Receiver(Stream& stream, uint64_t total, PickSize pick, uint64_t seed)
      : stream_(stream), total_(total), pick_(pick), random_(seed) {}

  // Calls Read once.
  Result<size_t> Step();
  bool IsDone() const { return received_ == total_; }
  uint64_t received() const { return received_; }

 private:
  Stream& stream_;
  const uint64_t total_;
  const PickSize pick_;
  const Pattern pattern_;
  std::mt19937_64 random_;
  std::vector<std::byte> memory_;
  uint64_t received_ = 0;
};

// Takes steps until all is through, and waits where there is nothing to do. DeadlineExceeded: it
// was never woken.
Status Carry(Stream& stream, Sender* sender, Receiver* receiver);

}  // namespace edl::wire
