#pragma once

#include <array>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "wire/stream.h"
#include "wire/testing/traffic.h"

// The behaviour of every stream, as one suite. A test includes this file once and says
//
//   INSTANTIATE_TEST_SUITE_P(Tcp, StreamConformance, testing::Values(MakeStreams(...)));
namespace edl::wire {

// The two ends of a connection.
struct StreamPair {
  std::unique_ptr<Stream> client;
  std::unique_ptr<Stream> server;
};

using MakeStreams = std::function<StreamPair()>;

class StreamConformance : public testing::TestWithParam<MakeStreams> {
 protected:
  using Interest = Stream::Interest;

  void SetUp() override {
    StreamPair streams = GetParam()();
    client_ = std::move(streams.client);
    server_ = std::move(streams.server);
    ASSERT_NE(client_, nullptr);
    ASSERT_NE(server_, nullptr);
  }

  static size_t Few(std::mt19937_64& random) { return 1 + random() % 500; }
  static size_t Mixed(std::mt19937_64& random) {
    return 1 + random() % (random() % 16 == 0 ? 400'000 : 5'000);
  }
  static size_t Most(std::mt19937_64&) { return Pattern::kMost; }
  static size_t One(std::mt19937_64&) { return 1; }

  static Result<size_t> ReadSome(Stream& stream) {
    std::array<std::byte, 4096> room{};
    const iovec part{.iov_base = room.data(), .iov_len = room.size()};
    return stream.Read({&part, 1});
  }
  static Result<size_t> WriteSome(Stream& stream) {
    std::array<std::byte, 4096> piece{};
    const iovec part{.iov_base = piece.data(), .iov_len = piece.size()};
    return stream.Write({&part, 1});
  }

  // Writes until there is no room and none comes; the bytes that went in.
  static uint64_t Fill(Stream& stream) {
    Sender sender(stream, uint64_t{1} << 30, &Mixed, 1);
    while (true) {
      const Result<size_t> sent = sender.Step();
      EXPECT_OK(sent);
      if (sent.ok() && *sent > 0) continue;
      if (!sent.ok() || !IsReady(stream, Interest::kWrite)) return sender.sent();
      stream.OnReady();
    }
  }

  // What a Read or Write fails with after a while.
  static Status EndOf(Stream& stream, Interest interest) {
    for (int i = 0; i < 100'000; ++i) {
      const Result<size_t> moved =
          interest == Interest::kRead ? ReadSome(stream) : WriteSome(stream);
      if (!moved.ok()) return moved.status();
      if (*moved == 0 && !Await(stream, interest)) return DeadlineExceeded("nobody rang");
    }
    return Ok();
  }

  // Sends from the client to the server, each in a thread of its own.
  void SendThrough(uint64_t total, PickSize pick) {
    Sender sender(*client_, total, pick, 1);
    Receiver receiver(*server_, total, pick, 2);
    Status sent;
    std::thread sending([&] { sent = Carry(*client_, &sender, nullptr); });
    EXPECT_OK(Carry(*server_, nullptr, &receiver)) << receiver.received();
    sending.join();
    EXPECT_OK(sent) << sender.sent();
  }

  std::unique_ptr<Stream> client_;
  std::unique_ptr<Stream> server_;
};

TEST_P(StreamConformance, BringsBytesInOrderHoweverTheyAreCut) {
  constexpr uint64_t kTotal = 8'000'000;
  Sender sender(*client_, kTotal, &Mixed, 1);
  Receiver receiver(*server_, kTotal, &Mixed, 2);

  while (!receiver.IsDone()) {
    if (!sender.IsDone()) {
      ASSERT_OK(sender.Step().status());
    }
    ASSERT_OK(receiver.Step().status()) << receiver.received();
  }

  EXPECT_TRUE(sender.IsDone());
}

TEST_P(StreamConformance, BringsBytesBothWaysAtOnce) {
  constexpr uint64_t kTotal = 8'000'000;
  Sender client_sender(*client_, kTotal, &Mixed, 1);
  Sender server_sender(*server_, kTotal, &Mixed, 2);
  Receiver client_receiver(*client_, kTotal, &Mixed, 3);
  Receiver server_receiver(*server_, kTotal, &Mixed, 4);

  Status client_end;
  std::thread client([&] { client_end = Carry(*client_, &client_sender, &client_receiver); });
  EXPECT_OK(Carry(*server_, &server_sender, &server_receiver));
  client.join();
  EXPECT_OK(client_end);
}

TEST_P(StreamConformance, TransfersMoreThanItsCapacity) { SendThrough(2 * Pattern::kMost, &Most); }

TEST_P(StreamConformance, WakesAnEndThatWaitsDuringALongTransfer) {
  SendThrough(uint64_t{64} << 20, &Mixed);
}

TEST_P(StreamConformance, WakesAnEndThatWaitsForFewBytes) { SendThrough(1'000'000, &Few); }

TEST_P(StreamConformance, WakesEachEndInTurn) {
  constexpr int kRounds = 2'000;
  const auto play = [](Stream& stream, bool begins) -> Status {
    Sender sender(stream, kRounds, &One, 1);
    Receiver receiver(stream, kRounds, &One, 2);
    if (begins) EDL_RETURN_IF_ERROR(sender.Step().status());
    while (!receiver.IsDone()) {
      EDL_ASSIGN_OR_RETURN(const size_t received, receiver.Step());
      if (received == 0 && !Await(stream, Interest::kRead)) return DeadlineExceeded("nobody rang");
      if (received > 0 && !sender.IsDone()) EDL_RETURN_IF_ERROR(sender.Step().status());
    }
    return Ok();
  };

  Status client_end;
  std::thread client([&] { client_end = play(*client_, /*begins=*/true); });
  EXPECT_OK(play(*server_, /*begins=*/false));
  client.join();
  EXPECT_OK(client_end);
}

TEST_P(StreamConformance, ReadsZeroBytesFromAnEmptyStream) {
  EXPECT_EQ(*ReadSome(*server_), 0U);
  EXPECT_FALSE(IsReady(*server_, Interest::kRead));

  ASSERT_GT(*WriteSome(*client_), 0U);

  ASSERT_TRUE(Await(*server_, Interest::kRead));
  EXPECT_GT(*ReadSome(*server_), 0U);
  EXPECT_EQ(*ReadSome(*server_), 0U);
  EXPECT_FALSE(IsReady(*server_, Interest::kRead));
}

TEST_P(StreamConformance, WritesZeroBytesToAFullStream) {
  const uint64_t filled = Fill(*client_);

  Receiver receiver(*server_, filled, &Mixed, 1);
  ASSERT_OK(Carry(*server_, nullptr, &receiver));

  ASSERT_TRUE(Await(*client_, Interest::kWrite));
  EXPECT_GT(*WriteSome(*client_), 0U);
}

TEST_P(StreamConformance, IgnoresEmptyBuffers) {
  const std::array<iovec, 2> empty{};
  ASSERT_GT(*WriteSome(*client_), 0U);

  EXPECT_EQ(*client_->Write({}), 0U);
  EXPECT_EQ(*client_->Write(empty), 0U);
  EXPECT_EQ(*server_->Read({}), 0U);
  EXPECT_EQ(*server_->Read(empty), 0U);

  EXPECT_GT(*ReadSome(*server_), 0U);
}

TEST_P(StreamConformance, AcceptsMoreBuffersThanASystemCall) {
  std::vector<std::byte> memory(5'000);
  std::vector<iovec> buffers;
  buffers.reserve(memory.size());
  for (std::byte& byte : memory) buffers.push_back({.iov_base = &byte, .iov_len = 1});

  EXPECT_GT(*client_->Write(buffers), 0U);
  EXPECT_GT(*server_->Read(buffers), 0U);
}

TEST_P(StreamConformance, ReadsTheRestAfterThePeerHasClosed) {
  constexpr uint64_t kRest = 4'000;
  Sender sender(*client_, kRest, &Few, 1);
  ASSERT_OK(Carry(*client_, &sender, nullptr));
  client_.reset();

  Receiver receiver(*server_, kRest, &Few, 1);
  EXPECT_OK(Carry(*server_, nullptr, &receiver)) << receiver.received();

  EXPECT_THAT(EndOf(*server_, Interest::kRead), StatusIs(Code::kUnavailable));
}

TEST_P(StreamConformance, ReadsTheRestAfterOnReadyNoticedTheClose) {
  constexpr uint64_t kRest = 4'000;
  Sender sender(*client_, kRest, &Few, 1);
  ASSERT_OK(Carry(*client_, &sender, nullptr));
  client_.reset();
  server_->OnReady();
  server_->OnReady();

  Receiver receiver(*server_, kRest, &Few, 1);
  EXPECT_OK(Carry(*server_, nullptr, &receiver)) << receiver.received();

  EXPECT_THAT(EndOf(*server_, Interest::kRead), StatusIs(Code::kUnavailable));
}

TEST_P(StreamConformance, WakesAReaderWhoseOtherEndCloses) {
  ASSERT_EQ(*ReadSome(*server_), 0U);

  client_.reset();

  EXPECT_THAT(EndOf(*server_, Interest::kRead), StatusIs(Code::kUnavailable));
  EXPECT_THAT(ReadSome(*server_), StatusIs(Code::kUnavailable));
}

TEST_P(StreamConformance, WakesAWriterWhoseOtherEndCloses) {
  Fill(*client_);

  server_.reset();

  ASSERT_TRUE(Await(*client_, Interest::kWrite));
  EXPECT_THAT(EndOf(*client_, Interest::kWrite), StatusIs(Code::kUnavailable));
}

TEST_P(StreamConformance, FailsToWriteAfterThePeerHasClosed) {
  server_.reset();

  EXPECT_THAT(EndOf(*client_, Interest::kWrite), StatusIs(Code::kUnavailable));
  EXPECT_THAT(WriteSome(*client_), StatusIs(Code::kUnavailable));
}

}  // namespace edl::wire
