#include "ps_client/link.h"

#include <array>
#include <cstring>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "base/testing/status_matchers.h"
#include "wire/socket.h"
#include "wire/testing/frame_peer.h"
#include "wire/testing/sockets.h"

namespace edl::ps_client {
namespace {

using testing::HasSubstr;
using wire::FrameBytes;
using wire::MessageType;
using wire::MetaOf;

constexpr job::PsIncarnation kServer(7);

LinkOptions Options() {
  return {.host = "localhost", .token = "secret", .caller = "test", .lanes_in_job = 1};
}

// A link, and the lane at the other end of its stream, which the test plays.
class LinkTest : public testing::Test {
 protected:
  void Connect() {
    auto [near, far] = wire::SocketPair();
    lane_ = std::make_unique<wire::FramePeer>(std::move(far));
    link_.Attach(std::make_unique<wire::SocketStream>(std::move(near)));
  }
  // Receives the next frame of the link.
  wire::Frame Receive(MessageType type) {
    EXPECT_OK(link_.Pump());
    std::optional<wire::Frame> frame = lane_->Read();
    if (!frame.has_value()) {
      ADD_FAILURE() << "the link sent nothing";
      return {};
    }
    EXPECT_EQ(frame->header.type, static_cast<uint8_t>(type));
    return std::move(*frame);
  }
  void Answer(const wire::Frame& to, std::string_view meta, std::string_view tensors = {}) {
    lane_->Write(FrameBytes({.type = wire::AnswerTo(to.header.type), .request = to.header.request},
                            meta, tensors));
  }
  void Refuse(const wire::Frame& to, const Status& why) {
    lane_->Write(FrameBytes(
        {.type = static_cast<uint8_t>(MessageType::kRefusal), .request = to.header.request},
        wire::Encode(why)));
  }
  void AnswerHello() {
    Answer(Receive(MessageType::kHello), wire::Encode(wire::Welcome{.incarnation = kServer}));
  }
  // Pumps until the request is done, or Pump fails.
  Status PumpUntilDone(const LinkRequest& request) {
    while (true) {
      EDL_RETURN_IF_ERROR(link_.Pump());
      if (request.done) return Ok();
      pollfd waiting{.fd = link_.fd(), .events = link_.events(), .revents = 0};
      if (poll(&waiting, 1, 30'000) != 1) return DeadlineExceeded("no answer within 30 s");
      link_.OnReady();
    }
  }
  static LinkRequest RequestOf(MessageType type, std::string meta) {
    return {.type = type, .meta = std::move(meta)};
  }

  Link link_{Options()};
  std::unique_ptr<wire::FramePeer> lane_;
};

TEST_F(LinkTest, SaysHelloBeforeItsRequestsAndTakesAnswersInOrder) {
  LinkRequest open = RequestOf(MessageType::kOpen, "open");
  LinkRequest state = RequestOf(MessageType::kState, "state");
  link_.Send(open);
  link_.Send(state);
  Connect();

  AnswerHello();
  Answer(Receive(MessageType::kOpen), "opened");
  Answer(Receive(MessageType::kState), "well");
  ASSERT_OK(PumpUntilDone(state));

  EXPECT_TRUE(link_.greeted());
  EXPECT_TRUE(link_.idle());
  EXPECT_EQ(open.answer, "opened");
  EXPECT_EQ(state.answer, "well");
  EXPECT_EQ(state.incarnation, kServer);
}

TEST_F(LinkTest, SendsRequestsWithoutAnAnswerAgainOnTheNextConnection) {
  LinkRequest answered = RequestOf(MessageType::kOpen, "answered");
  LinkRequest lost = RequestOf(MessageType::kPush, "lost");
  link_.Send(answered);
  link_.Send(lost);
  Connect();
  AnswerHello();
  Answer(Receive(MessageType::kOpen), "");
  Receive(MessageType::kPush);
  ASSERT_OK(PumpUntilDone(answered));
  lane_->Close();
  ASSERT_THAT(PumpUntilDone(lost), StatusIs(Code::kUnavailable));

  Connect();
  AnswerHello();
  const wire::Frame again = Receive(MessageType::kPush);

  EXPECT_EQ(MetaOf(again), "lost");
  Answer(again, "applied");
  ASSERT_OK(PumpUntilDone(lost));
  EXPECT_EQ(lost.answer, "applied");
}

TEST_F(LinkTest, MakesNoProgressBySendingARequestAgain) {
  LinkRequest push = RequestOf(MessageType::kPush, "batch");
  link_.Send(push);
  Connect();
  AnswerHello();
  Receive(MessageType::kPush);
  const uint64_t progress = link_.progress();
  const uint64_t traffic = link_.traffic();

  Connect();
  AnswerHello();
  const wire::Frame again = Receive(MessageType::kPush);

  EXPECT_EQ(link_.progress(), progress);
  EXPECT_GT(link_.traffic(), traffic);
  Answer(again, "");
  ASSERT_OK(PumpUntilDone(push));
  EXPECT_GT(link_.progress(), progress);
}

TEST_F(LinkTest, DeclaresOnEachConnection) {
  link_.Declare("parameters");
  for (int connection = 0; connection < 2; ++connection) {
    Connect();
    AnswerHello();
    wire::Declare declare;
    ASSERT_OK(wire::Decode(Receive(MessageType::kDeclare).meta(), declare));
    EXPECT_EQ(declare.text, "parameters");
    link_.Lose();
  }
}

TEST_F(LinkTest, ReadsTensorsOfAnAnswerIntoTheBuffersOfItsRequest) {
  std::array<float, 3> first{};
  std::array<float, 2> second{};
  LinkRequest pull = RequestOf(MessageType::kPull, "");
  pull.buffers.Add(first.data(), sizeof(first));
  pull.buffers.Continue(second.data(), sizeof(second));
  pull.buffers.End();
  link_.Send(pull);
  Connect();
  AnswerHello();

  std::string tensors(2 * wire::kAlignment, '\0');
  const std::array<float, 3> rows = {1, 2, 3};
  const std::array<float, 2> values = {4, 5};
  std::memcpy(tensors.data(), rows.data(), sizeof(rows));
  std::memcpy(tensors.data() + wire::kAlignment, values.data(), sizeof(values));
  Answer(Receive(MessageType::kPull), "version", tensors);
  ASSERT_OK(PumpUntilDone(pull));

  EXPECT_EQ(first, rows);
  EXPECT_EQ(second, values);
}

TEST_F(LinkTest, TakesAnAnswerOfAnotherLengthForDamage) {
  float value = 0;
  LinkRequest pull = RequestOf(MessageType::kPull, "");
  pull.buffers.Add(&value, sizeof(value));
  link_.Send(pull);
  Connect();
  AnswerHello();

  Answer(Receive(MessageType::kPull), "version", std::string(3 * wire::kAlignment, 'x'));

  EXPECT_THAT(PumpUntilDone(pull), StatusIs(Code::kDataLoss, HasSubstr("bytes")));
  EXPECT_FALSE(pull.done);
}

TEST_F(LinkTest, TakesAnAnswerToAnotherRequestForDamage) {
  LinkRequest state = RequestOf(MessageType::kState, "");
  link_.Send(state);
  Connect();
  AnswerHello();
  wire::Frame request = Receive(MessageType::kState);
  request.header.request += 1;

  Answer(request, "");

  EXPECT_THAT(PumpUntilDone(state), StatusIs(Code::kDataLoss));
}

TEST_F(LinkTest, EndsARequestThatTheLaneRefuses) {
  LinkRequest open = RequestOf(MessageType::kOpen, "");
  size_t remaining = 1;
  open.remaining = &remaining;
  link_.Send(open);
  Connect();
  AnswerHello();

  Refuse(Receive(MessageType::kOpen), Aborted("the lease has ended"));
  ASSERT_OK(PumpUntilDone(open));

  EXPECT_EQ(remaining, 0U);
  EXPECT_THAT(open.status, StatusIs(Code::kAborted, "the lease has ended"));
}

TEST_F(LinkTest, SendsARequestAgainThatIsRefusedForNow) {
  LinkRequest open = RequestOf(MessageType::kOpen, "");
  link_.Send(open);
  Connect();
  AnswerHello();

  Refuse(Receive(MessageType::kOpen), Unavailable("not now"));
  EXPECT_THAT(PumpUntilDone(open), StatusIs(Code::kUnavailable));

  Connect();
  AnswerHello();
  EXPECT_EQ(MetaOf(Receive(MessageType::kOpen)), "");
  EXPECT_FALSE(open.done);
}

TEST_F(LinkTest, FailsItsRequestsWhenItIsGivenUp) {
  LinkRequest open = RequestOf(MessageType::kOpen, "");
  link_.Send(open);
  Connect();

  link_.GiveUp(DeadlineExceeded("too late"));

  EXPECT_THAT(open.status, StatusIs(Code::kDeadlineExceeded, "too late"));
  EXPECT_TRUE(link_.idle());
  EXPECT_FALSE(link_.connected());
}

}  // namespace
}  // namespace edl::ps_client
