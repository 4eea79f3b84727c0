#include "wire/byte_ring.h"

#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "base/testing/status_matchers.h"
#include "wire/testing/sockets.h"
#include "wire/testing/traffic.h"

namespace edl::wire {
namespace {

// A ring whose both ends see it at the same place, where the thread sanitizer sees it too.
struct Ring {
  explicit Ring(size_t capacity) : bytes(capacity) {}

  RingControl control{};
  std::vector<std::byte> bytes;
  std::array<FileDescriptor, 2> sockets = SocketPair();
  Doorbell reader_bell{std::move(sockets[0])};  // by which the reader is woken
  Doorbell writer_bell{std::move(sockets[1])};
  RingReader reader{control, bytes, reader_bell};
  RingWriter writer{control, bytes, writer_bell};
};

// One direction of a ring as a stream.
class ReadEnd final : public Stream {
 public:
  explicit ReadEnd(Ring& ring) : ring_(ring) {}
  Result<size_t> Read(std::span<const iovec> buffers) override {
    return ring_.reader.Read(buffers);
  }
  Result<size_t> Write(std::span<const iovec>) override { return Unimplemented("it reads"); }
  int fd() const override { return ring_.reader_bell.fd(); }
  short EventsFor(Interest) const override { return POLLIN; }
  bool IsPeerGone() const override { return false; }
  void OnReady() override { ring_.reader_bell.Answer(); }

 private:
  Ring& ring_;
};

class WriteEnd final : public Stream {
 public:
  explicit WriteEnd(Ring& ring) : ring_(ring) {}
  Result<size_t> Read(std::span<const iovec>) override { return Unimplemented("it writes"); }
  Result<size_t> Write(std::span<const iovec> pieces) override {
    return ring_.writer.Write(pieces);
  }
  int fd() const override { return ring_.writer_bell.fd(); }
  short EventsFor(Interest) const override { return POLLIN; }
  bool IsPeerGone() const override { return false; }
  void OnReady() override { ring_.writer_bell.Answer(); }

 private:
  Ring& ring_;
};

size_t Write(Ring& ring, size_t size) {
  std::vector<std::byte> bytes(size);
  const iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
  return *ring.writer.Write({&piece, 1});
}

size_t Read(Ring& ring, size_t size) {
  std::vector<std::byte> bytes(size);
  const iovec room{.iov_base = bytes.data(), .iov_len = bytes.size()};
  return *ring.reader.Read({&room, 1});
}

bool IsRung(const Doorbell& bell) {
  pollfd wait{.fd = bell.fd(), .events = POLLIN};
  return poll(&wait, 1, 0) == 1;
}

TEST(ByteRing, IsReadWhileItIsWritten) {
  constexpr uint64_t kTotal = 8'000'000;
  const auto pick = [](std::mt19937_64& random) -> size_t { return 1 + random() % 6'000; };
  Ring ring(4096);
  ReadEnd read_end(ring);
  WriteEnd write_end(ring);
  Sender sender(write_end, kTotal, pick, 1);
  Receiver receiver(read_end, kTotal, pick, 2);

  Status sent;
  std::thread sending([&] { sent = Carry(write_end, &sender, nullptr); });
  EXPECT_OK(Carry(read_end, nullptr, &receiver)) << receiver.received();
  sending.join();
  EXPECT_OK(sent) << sender.sent();
}

// Keeps a thread on the n-th processor that the process may use: two that wake each other are
// otherwise put on one, where they never meet.
class OnProcessor {
 public:
  explicit OnProcessor(int n) {
    CHECK(pthread_getaffinity_np(pthread_self(), sizeof(before_), &before_) == 0);
    n %= CPU_COUNT(&before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &before_) && n-- == 0) CPU_SET(cpu, &one);
    }
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof(one), &one) == 0);
  }
  ~OnProcessor() { pthread_setaffinity_np(pthread_self(), sizeof(before_), &before_); }
  OnProcessor(const OnProcessor&) = delete;
  OnProcessor& operator=(const OnProcessor&) = delete;

 private:
  cpu_set_t before_;
};

// One end tries in the moment in which the other acts, round by round: `tries` until it has
// something to do, `acts` once.
Status Race(Stream& waiting, const std::function<size_t()>& tries,
            const std::function<void()>& acts) {
  constexpr int kRounds = 20'000;
  std::atomic<int> round = 0;
  const auto linger = [](std::mt19937& random) {
    for (uint32_t left = random() % 256; left > 0; --left) {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // or the loop is compiled away
    }
  };
  std::thread acting([&] {
    const OnProcessor other(1);
    std::mt19937 random(1);  // NOLINT: the same each time
    for (int i = 1; i <= kRounds; ++i) {
      while (round.load() < i) std::this_thread::yield();
      if (round.load() > kRounds) return;
      linger(random);
      acts();
    }
  });
  const OnProcessor one(0);
  std::mt19937 random(2);  // NOLINT: the same each time
  Status status;
  for (int i = 1; i <= kRounds && status.ok(); ++i) {
    round.store(i);
    linger(random);
    while (status.ok() && tries() == 0) {
      if (!Await(waiting, Stream::Interest::kBoth)) status = DeadlineExceeded("round {}", i);
    }
  }
  round.store(kRounds + 1);
  acting.join();
  return status;
}

TEST(ByteRing, WakesAReaderThatGoesToSleepDuringAWrite) {
  Ring ring(4096);
  ReadEnd end(ring);
  EXPECT_OK(Race(
      end, [&] { return Read(ring, 1); }, [&] { Write(ring, 1); }));
}

TEST(ByteRing, WakesAWriterThatGoesToSleepDuringARead) {
  Ring ring(4096);
  WriteEnd end(ring);
  Write(ring, 4096);
  EXPECT_OK(Race(
      end, [&] { return Write(ring, 2048); }, [&] { Read(ring, 2048); }));
}

TEST(ByteRing, HoldsAllItsBytes) {
  Ring ring(4096);
  EXPECT_EQ(Write(ring, 5000), 4096U);
  EXPECT_EQ(Write(ring, 1), 0U);
  EXPECT_EQ(Read(ring, 5000), 4096U);
  EXPECT_EQ(Read(ring, 1), 0U);
  EXPECT_EQ(Write(ring, 5000), 4096U);
}

TEST(ByteRing, RingsOnceForAReaderThatWaits) {
  Ring ring(4096);
  Write(ring, 1);
  EXPECT_FALSE(IsRung(ring.reader_bell));
  Read(ring, 1);
  ASSERT_EQ(Read(ring, 1), 0U);

  Write(ring, 1);
  EXPECT_TRUE(IsRung(ring.reader_bell));

  ring.reader_bell.Answer();
  Write(ring, 1);
  EXPECT_FALSE(IsRung(ring.reader_bell));
}

TEST(ByteRing, RingsForAWriterThatWaitsOnceHalfIsFree) {
  Ring ring(4096);
  Write(ring, 4096);
  ASSERT_EQ(Write(ring, 1), 0U);

  Read(ring, 2047);
  EXPECT_FALSE(IsRung(ring.writer_bell));

  Read(ring, 1);
  EXPECT_TRUE(IsRung(ring.writer_bell));
}

TEST(ByteRing, RejectsAWritePositionBeyondTheCapacity) {
  for (const uint64_t claim : {uint64_t{4097}, uint64_t{1} << 40, ~uint64_t{0}}) {
    Ring ring(4096);
    ring.control.written = claim;
    std::byte byte{};
    const iovec room{.iov_base = &byte, .iov_len = 1};
    EXPECT_THAT(ring.reader.Read({&room, 1}), StatusIs(Code::kDataLoss)) << claim;
  }
}

TEST(ByteRing, RejectsAWritePositionThatMovesBack) {
  Ring ring(4096);
  Write(ring, 10);
  Read(ring, 10);
  ring.control.written = 9;

  std::byte byte{};
  const iovec room{.iov_base = &byte, .iov_len = 1};
  EXPECT_THAT(ring.reader.Read({&room, 1}), StatusIs(Code::kDataLoss));
}

TEST(ByteRing, RejectsAReadPositionBeyondTheWritePosition) {
  for (const uint64_t claim : {uint64_t{11}, uint64_t{1} << 40}) {
    Ring ring(4096);
    Write(ring, 10);
    ring.control.read = claim;
    std::byte byte{};
    const iovec piece{.iov_base = &byte, .iov_len = 1};
    EXPECT_THAT(ring.writer.Write({&piece, 1}), StatusIs(Code::kDataLoss)) << claim;
  }
}

TEST(ByteRing, RejectsAReadPositionThatMovesBack) {
  Ring ring(4096);
  Write(ring, 4096);
  Read(ring, 10);
  Write(ring, 10);
  ring.control.read = 9;

  std::byte byte{};
  const iovec piece{.iov_base = &byte, .iov_len = 1};
  EXPECT_THAT(ring.writer.Write({&piece, 1}), StatusIs(Code::kDataLoss));
}

TEST(ByteRing, IgnoresWritesOfThePeerToItsOwnPositions) {
  Ring ring(4096);
  Write(ring, 10);
  ring.control.read = 5;  // the reader's own

  EXPECT_EQ(Read(ring, 20), 10U);
  EXPECT_EQ(ring.control.read, 10U);
}

}  // namespace
}  // namespace edl::wire
