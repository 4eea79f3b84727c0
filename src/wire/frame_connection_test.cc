#include "wire/frame_connection.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "wire/messages.h"
#include "wire/socket.h"
#include "wire/testing/frame_peer.h"
#include "wire/testing/sockets.h"
#include "wire/testing/watches.h"

namespace edl::wire {
namespace {

using testing::Not;
using Handled = FrameConnection::Handled;

constexpr uint8_t kType = 4;

// Four bytes at a time, and no more than `available` of them.
class Letters final : public Pieces {
 public:
  Letters(size_t pieces, size_t available) : pieces_(pieces), available_(available) {}

  size_t bytes() const override { return pieces_ * 4; }
  size_t NextBytes() const override { return written_ < pieces_ ? 4 : 0; }
  bool WriteNext(std::byte* out) override {
    if (written_ == available_) return false;
    std::fill_n(out, 4, static_cast<std::byte>('a' + written_++));
    return true;
  }

 private:
  const size_t pieces_;
  const size_t available_;
  size_t written_ = 0;
};

class FrameConnectionTest : public testing::Test {
 protected:
  FrameConnectionTest() : thread_(std::move(*EventLoop::Make(clock_))), ends_(SocketPair()) {}
  ~FrameConnectionTest() override {
    thread_.Run([&] { connection_.reset(); });
  }

  void Serve(FrameConnection::OnFrame on_frame) {
    thread_.Run([&] {
      connection_ = std::make_unique<FrameConnection>(
          thread_.loop(), std::make_unique<SocketStream>(std::move(ends_[0])), FrameLimits{},
          std::move(on_frame), [this](const Status& why) { ended_.set_value(why); });
    });
  }
  Status AwaitEnd() {
    auto ended = ended_.get_future();
    if (ended.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
      return DeadlineExceeded("the connection did not end within 30 s");
    }
    return ended.get();
  }

  const SystemClock clock_{};
  LoopThread thread_;
  std::array<FileDescriptor, 2> ends_;
  FramePeer peer_{std::move(ends_[1])};
  std::promise<Status> ended_;
  std::unique_ptr<FrameConnection> connection_;
};

TEST_F(FrameConnectionTest, AnswersFramesInTheirOrder) {
  Serve([this](const Frame& frame) {
    connection_->Answer(frame.header, MetaOf(frame) + "!");
    return Handled::kDone;
  });

  peer_.Write(FrameBytes({.type = kType, .request = 7}, "one") +
              FrameBytes({.type = kType, .request = 8}, "two"));

  for (const auto& [request, text] : {std::pair<uint64_t, const char*>{7, "one!"}, {8, "two!"}}) {
    const std::optional<Frame> answer = peer_.Read();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->header.type, AnswerTo(kType));
    EXPECT_EQ(answer->header.request, request);
    EXPECT_EQ(MetaOf(*answer), text);
  }
}

TEST_F(FrameConnectionTest, PassesAPostponedFrameAgainAndNoOtherBeforeIt) {
  bool accepts = false;  // the loop's thread only
  std::promise<void> postponed;
  Serve([&](const Frame& frame) {
    if (!accepts) {
      postponed.set_value();
      return Handled::kLater;
    }
    connection_->Answer(frame.header, MetaOf(frame));
    return Handled::kDone;
  });
  peer_.Write(FrameBytes({.type = kType, .request = 1}, "first") +
              FrameBytes({.type = kType, .request = 2}, "second"));
  ASSERT_EQ(postponed.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_TRUE(peer_.IsSilent());

  thread_.Run([&] {
    EXPECT_TRUE(connection_->holds_frame());
    accepts = true;
    connection_->Resume();
  });

  EXPECT_EQ(MetaOf(*peer_.Read()), "first");
  EXPECT_EQ(MetaOf(*peer_.Read()), "second");
}

TEST_F(FrameConnectionTest, ReadsNoFurtherWhileThePeerDoesNotReadItsAnswers) {
  constexpr uint64_t kRequests = 64;
  constexpr size_t kAnswerBytes = size_t{1} << 20;
  Serve([this](const Frame& frame) {
    std::byte* const out = connection_->Answer(frame.header, {}, kAnswerBytes);
    std::fill_n(out, kAnswerBytes, std::byte{1});
    return Handled::kDone;
  });

  for (uint64_t i = 1; i <= kRequests; ++i) {
    peer_.Write(FrameBytes({.type = kType, .request = i}, ""));
  }
  // A turn of the loop after the requests have arrived.
  size_t unsent = 0;
  for (int turn = 0; turn < 100; ++turn) {
    thread_.Run([&] { unsent = std::max(unsent, connection_->outgoing_bytes()); });
  }
  EXPECT_LT(unsent, kRequests * kAnswerBytes / 2);

  for (uint64_t i = 1; i <= kRequests; ++i) {
    const std::optional<Frame> answer = peer_.Read();
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(answer->header.request, i);
    ASSERT_EQ(answer->tensors().size(), kAnswerBytes);
  }
}

TEST_F(FrameConnectionTest, SendsAnAnswerInPieces) {
  Serve([this](const Frame& frame) {
    connection_->AnswerInPieces(frame.header, "meta", std::make_unique<Letters>(3, 3));
    return Handled::kDone;
  });
  peer_.Write(FrameBytes({.type = kType, .request = 1}, ""));

  const std::optional<Frame> answer = peer_.Read();

  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(MetaOf(*answer), "meta");
  const std::string_view text(reinterpret_cast<const char*>(answer->tensors().data()),
                              answer->tensors().size());
  EXPECT_EQ(text, "aaaabbbbcccc");
}

TEST_F(FrameConnectionTest, EndsWhenAPieceNoLongerExists) {
  Serve([this](const Frame& frame) {
    connection_->AnswerInPieces(frame.header, "meta", std::make_unique<Letters>(3, 1));
    return Handled::kDone;
  });
  peer_.Write(FrameBytes({.type = kType, .request = 1}, ""));

  EXPECT_THAT(AwaitEnd(), StatusIs(Code::kDataLoss));
  EXPECT_FALSE(peer_.Read().has_value());
}

TEST_F(FrameConnectionTest, RefusesWhatIsNotAFrameAndEnds) {
  Serve([](const Frame&) { return Handled::kDone; });

  peer_.Write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");

  const std::optional<Frame> refusal = peer_.Read();
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->header.type, static_cast<uint8_t>(MessageType::kRefusal));
  EXPECT_THAT(DecodeRefusal(refusal->meta()), StatusIs(Code::kInvalidArgument));
  peer_.Close();
  EXPECT_OK(AwaitEnd()) << "the peer was told the reason";
}

TEST_F(FrameConnectionTest, EndsWithOkWhenThePeerClosesBetweenFrames) {
  Serve([this](const Frame& frame) {
    connection_->Answer(frame.header, {});
    return Handled::kDone;
  });
  peer_.Write(FrameBytes({.type = kType, .request = 1}, "whole"));
  ASSERT_TRUE(peer_.Read().has_value());

  peer_.Close();

  EXPECT_THAT(AwaitEnd(), IsOk());
}

TEST_F(FrameConnectionTest, EndsWithAnErrorWhenThePeerClosesWithinAFrame) {
  Serve([](const Frame&) { return Handled::kDone; });
  const std::string frame = FrameBytes({.type = kType, .request = 1}, "whole");

  peer_.Write(std::string_view(frame).substr(0, frame.size() - 1));
  peer_.Close();

  EXPECT_THAT(AwaitEnd(), Not(IsOk()));
}

TEST_F(FrameConnectionTest, EndsWhenThereIsNoRoomToWatchIt) {
  bool ran_out = false;
  thread_.Run([&] { ran_out = RunOutOfWatches(); });
  if (!ran_out) GTEST_SKIP() << "system calls cannot be filtered here";

  Serve([](const Frame&) { return Handled::kDone; });

  EXPECT_THAT(AwaitEnd(), StatusIs(Code::kResourceExhausted));
}

}  // namespace
}  // namespace edl::wire
