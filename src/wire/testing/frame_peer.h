#pragma once

#include <cerrno>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/file.h"
#include "wire/frame.h"
#include "wire/frame_reader.h"

namespace edl::wire {

// The bytes of a frame, with tensors behind the meta part.
inline std::string FrameBytes(FrameHeader header, std::string_view meta,
                              std::string_view tensors = {}) {
  const size_t meta_room = tensors.empty() ? meta.size() : AlignedUp(meta.size());
  header.meta_bytes = static_cast<uint32_t>(meta.size());
  header.body_bytes = meta_room + tensors.size();
  const auto encoded = EncodeHeader(header);
  std::string bytes(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  bytes += meta;
  bytes.resize(encoded.size() + meta_room);
  bytes += tensors;
  return bytes;
}

// The peer of a stream under test: a blocking socket on which a test reads and writes frames. A
// read or a write that takes longer than 30 s fails the test.
class FramePeer {
 public:
  explicit FramePeer(FileDescriptor socket) : socket_(std::move(socket)) {
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  }

  void Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ASSERT_GT(sent, 0) << "the other end did not read within 30 s, or has closed";
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  // The next frame. nullopt: the other end has closed the stream.
  std::optional<Frame> Read() {
    while (true) {
      if (std::optional<Frame> frame = reader_.Next()) return frame;
      const std::span<std::byte> room = reader_.Room();
      const ssize_t got = recv(socket_.get(), room.data(), room.size(), 0);
      EXPECT_TRUE(got >= 0 || errno == ECONNRESET) << "no frame arrived within 30 s";
      if (got <= 0) return std::nullopt;
      const Status added = reader_.Add(static_cast<size_t>(got));
      EXPECT_TRUE(added.ok()) << added.message();
      if (!added.ok()) return std::nullopt;
    }
  }
  // Whether nothing has arrived yet.
  bool IsSilent() const {
    char byte = 0;
    return recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  void Close() { socket_ = FileDescriptor(); }

 private:
  FileDescriptor socket_;
  FrameReader reader_;
};

inline std::string MetaOf(const Frame& frame) {
  return {reinterpret_cast<const char*>(frame.meta().data()), frame.meta().size()};
}

}  // namespace edl::wire
