#include "wire/messages.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace edl::wire {
namespace {

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

constexpr ShardKey kShard{.ledger = 1, .dataset = 2, .generation = 3, .epoch = 4, .ordinal = 5};

Push APush() {
  return {.lease = 6,
          .shard = kShard,
          .batch = 7,
          .refused = true,
          .tables = {{.table = 8, .ids = 9, .learning_rate = 0.5F}, {.table = 10, .ids = 11}},
          .tensors = {{.tensor = 12, .learning_rate = 2}}};
}

TEST(Messages, ArriveAsTheyWereSent) {
  Push push;
  ASSERT_EQ(Decode(Bytes(Encode(APush())), push), Ok());
  EXPECT_EQ(push.lease, 6U);
  EXPECT_EQ(push.shard, kShard);
  EXPECT_EQ(push.batch, 7U);
  EXPECT_TRUE(push.refused);
  EXPECT_EQ(push.tables, APush().tables);
  EXPECT_EQ(push.tensors, APush().tensors);

  Hello hello;
  const Hello sent{.token = "secret", .caller = "worker-1", .lane = 1, .place = 3, .lanes = 4};
  ASSERT_EQ(Decode(Bytes(Encode(sent)), hello), Ok());
  EXPECT_EQ(hello.token, "secret");
  EXPECT_EQ(hello.caller, "worker-1");
  EXPECT_EQ(hello.lane, 1U);
  EXPECT_EQ(hello.place, 3U);
  EXPECT_EQ(hello.lanes, 4U);
}

TEST(Messages, OfTheMasterArriveAsTheyWereSent) {
  Serve serve;
  const Serve sent{.incarnation = 1, .ps_epoch = 2, .may_push = true, .floor = 3, .covered = "{}"};
  ASSERT_EQ(Decode(Bytes(Encode(sent)), serve), Ok());
  EXPECT_EQ(serve.incarnation, 1U);
  EXPECT_EQ(serve.ps_epoch, 2U);
  EXPECT_TRUE(serve.may_push);
  EXPECT_EQ(serve.floor, 3U);
  EXPECT_EQ(serve.covered, "{}");

  Restore restore;
  ASSERT_EQ(Decode(Bytes(Encode(Restore{
                       .incarnation = 4, .ps_epoch = 5, .with_marks = false, .paths = {"a", "b"}})),
                   restore),
            Ok());
  EXPECT_EQ(restore.incarnation, 4U);
  EXPECT_EQ(restore.ps_epoch, 5U);
  EXPECT_FALSE(restore.with_marks);
  EXPECT_EQ(restore.paths, (std::vector<std::string>{"a", "b"}));
}

TEST(Messages, AreRefusedWhenTheyAreCutOrLonger) {
  const std::string whole = Encode(APush());
  for (size_t size = 0; size < whole.size(); ++size) {
    Push push;
    EXPECT_EQ(Decode(Bytes(whole.substr(0, size)), push).code(), Code::kInvalidArgument) << size;
  }
  Push push;
  EXPECT_EQ(Decode(Bytes(whole + "x"), push).code(), Code::kInvalidArgument);
}

TEST(Messages, WithALyingCountAskForNoMemory) {
  std::string put = Encode(Put{});
  put[3] = '\x7F';  // 2 billion tensors
  Put message;
  EXPECT_EQ(Decode(Bytes(put), message).code(), Code::kInvalidArgument);
  EXPECT_EQ(message.tensors.capacity(), 0U);
}

TEST(Messages, WithAChoiceThatThereIsNotAreRefused) {
  std::string pull = Encode(Pull{});
  pull[0] = 2;
  Pull message;
  EXPECT_EQ(Decode(Bytes(pull), message).code(), Code::kInvalidArgument);
}

TEST(Messages, TellAFailureAsItWas) {
  const Status failure = NotFound("table {} was not declared", 7);
  EXPECT_EQ(DecodeRefusal(Bytes(Encode(failure))), failure);
  EXPECT_EQ(DecodeRefusal(Bytes(Encode(Ok()))).code(), Code::kInternal);
  EXPECT_EQ(DecodeRefusal({}).code(), Code::kInternal);
}

TEST(TensorReader, TakesTensorsAtMultiplesOf64) {
  alignas(64) std::array<std::byte, 64 + 8> bytes{};
  bytes[0] = std::byte{1};
  bytes[64] = std::byte{2};
  TensorReader reader(bytes);

  const auto first = reader.Take<int32_t>(3);
  const auto second = reader.Take<int64_t>(1);

  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ((*first)[0], 1);
  EXPECT_EQ((*second)[0], 2);
  EXPECT_EQ(reader.End(), Ok());
}

TEST(TensorReader, RefusesMoreThanThereIs) {
  alignas(64) std::array<std::byte, 64> bytes{};
  EXPECT_EQ(TensorReader(bytes).Take<int64_t>(9).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(TensorReader(bytes).Take<int64_t>(SIZE_MAX / 4).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(TensorReader(bytes).End().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace edl::wire
