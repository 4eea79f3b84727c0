#include "wire/testing/traffic.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <poll.h>

#include "base/check.h"

namespace edl::wire {
namespace {

constexpr int kTimeoutMs = 30'000;
constexpr size_t kPeriod = 65'521;  // no multiple of anything that a stream may be cut by

int Poll(const Stream& stream, Stream::Interest interest, int timeout_ms) {
  pollfd wait{.fd = stream.fd(), .events = stream.EventsFor(interest)};
  int ready = -1;
  do {
    ready = poll(&wait, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready;
}

// `bytes` in up to 8 parts, of which some are empty.
std::vector<iovec> Cut(std::span<const std::byte> bytes, std::mt19937_64& random) {
  std::vector<iovec> parts;
  auto* at = const_cast<std::byte*>(bytes.data());  // NOLINT: an iovec is for both directions
  size_t left = bytes.size();
  while (left > 0) {
    const size_t size = parts.size() == 7 ? left : random() % (left + 1);
    parts.push_back({.iov_base = at, .iov_len = size});
    at += size;
    left -= size;
  }
  return parts;
}

}  // namespace

bool Await(Stream& stream, Stream::Interest interest) {
  if (Poll(stream, interest, kTimeoutMs) != 1) return false;
  stream.OnReady();
  return true;
}

bool IsReady(const Stream& stream, Stream::Interest interest) {
  return Poll(stream, interest, 0) == 1;
}

Pattern::Pattern() : bytes_(kPeriod + kMost) {
  std::mt19937 random;  // NOLINT: the same for all
  for (size_t i = 0; i < kPeriod; ++i) bytes_[i] = static_cast<std::byte>(random());
  for (size_t at = kPeriod; at < bytes_.size(); at += kPeriod) {
    std::memcpy(&bytes_[at], bytes_.data(), std::min(kPeriod, bytes_.size() - at));
  }
}

std::span<const std::byte> Pattern::At(uint64_t position, size_t size) const {
  CHECK(size <= kMost);
  return std::span(bytes_).subspan(position % kPeriod, size);
}

Result<size_t> Sender::Step() {
  const size_t size = std::min<uint64_t>(pick_(random_), total_ - sent_);
  Result<size_t> sent = stream_.Write(Cut(pattern_.At(sent_, size), random_));
  if (sent.ok()) sent_ += *sent;
  return sent;
}

Result<size_t> Receiver::Step() {
  const size_t size = std::min<uint64_t>(pick_(random_), total_ - received_);
  if (memory_.size() < size) memory_.resize(size);
  const std::span<std::byte> room = std::span(memory_).first(size);
  Result<size_t> received = stream_.Read(Cut(room, random_));
  if (!received.ok()) return received;
  if (std::memcmp(room.data(), pattern_.At(received_, *received).data(), *received) != 0) {
    return DataLoss("bytes {} to {} are not what was sent", received_, received_ + *received);
  }
  received_ += *received;
  return received;
}

Status Carry(Stream& stream, Sender* sender, Receiver* receiver) {
  while (true) {
    const bool sends = sender != nullptr && !sender->IsDone();
    const bool receives = receiver != nullptr && !receiver->IsDone();
    if (!sends && !receives) return Ok();
    size_t moved = 0;
    if (sends) {
      EDL_ASSIGN_OR_RETURN(const size_t sent, sender->Step());
      moved += sent;
    }
    if (receives) {
      EDL_ASSIGN_OR_RETURN(const size_t received, receiver->Step());
      moved += received;
    }
    if (moved > 0) continue;
    const Stream::Interest interest = sends && receives ? Stream::Interest::kBoth
                                      : sends           ? Stream::Interest::kWrite
                                                        : Stream::Interest::kRead;
    if (!Await(stream, interest)) return DeadlineExceeded("nobody rang");
  }
}

}  // namespace edl::wire
