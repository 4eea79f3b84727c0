#include "wire/messages.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::wire {
namespace {

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

constexpr ShardKey kShard{.ledger = job::LedgerId(1),
                          .dataset = job::DatasetId(2),
                          .generation = 3,
                          .epoch = 4,
                          .ordinal = 5};

Push APush() {
  return {.lease = job::LeaseId(6),
          .shard = kShard,
          .batch = 7,
          .refused = true,
          .tables = {{.table = 8, .ids = 9, .learning_rate = 0.5F}, {.table = 10, .ids = 11}},
          .tensors = {{.tensor = 12, .learning_rate = 2}}};
}

TEST(Messages, ArriveAsTheyWereSent) {
  Push push;
  ASSERT_OK(Decode(Bytes(Encode(APush())), push));
  EXPECT_EQ(push.lease, job::LeaseId(6));
  EXPECT_EQ(push.shard, kShard);
  EXPECT_EQ(push.batch, 7U);
  EXPECT_TRUE(push.refused);
  EXPECT_EQ(push.tables, APush().tables);
  EXPECT_EQ(push.tensors, APush().tensors);

  Hello hello;
  const Hello sent{.token = "secret",
                   .caller = "worker-1",
                   .lane_in_server = job::LaneInServer(1),
                   .lane_in_job = job::LaneInJob(3),
                   .lanes_in_job = 4};
  ASSERT_OK(Decode(Bytes(Encode(sent)), hello));
  EXPECT_EQ(hello.token, "secret");
  EXPECT_EQ(hello.caller, "worker-1");
  EXPECT_EQ(hello.lane_in_server, job::LaneInServer(1));
  EXPECT_EQ(hello.lane_in_job, job::LaneInJob(3));
  EXPECT_EQ(hello.lanes_in_job, 4U);
}

TEST(Messages, OfTheMasterArriveAsTheyWereSent) {
  Serve serve;
  const Serve sent{.incarnation = job::PsIncarnation(1),
                   .ps_epoch = job::PsEpoch(2),
                   .may_push = true,
                   .floor = job::LeaseId(3),
                   .covered = "{}"};
  ASSERT_OK(Decode(Bytes(Encode(sent)), serve));
  EXPECT_EQ(serve.incarnation, job::PsIncarnation(1));
  EXPECT_EQ(serve.ps_epoch, job::PsEpoch(2));
  EXPECT_TRUE(serve.may_push);
  EXPECT_EQ(serve.floor, job::LeaseId(3));
  EXPECT_EQ(serve.covered, "{}");

  Restore restore;
  ASSERT_OK(Decode(Bytes(Encode(Restore{.incarnation = job::PsIncarnation(4),
                                        .ps_epoch = job::PsEpoch(5),
                                        .with_watermarks = false,
                                        .paths = {"a", "b"}})),
                   restore));
  EXPECT_EQ(restore.incarnation, job::PsIncarnation(4));
  EXPECT_EQ(restore.ps_epoch, job::PsEpoch(5));
  EXPECT_FALSE(restore.with_watermarks);
  EXPECT_EQ(restore.paths, (std::vector<std::string>{"a", "b"}));
}

TEST(Messages, AreRefusedWhenTheyAreCutOrLonger) {
  const std::string whole = Encode(APush());
  for (size_t size = 0; size < whole.size(); ++size) {
    Push push;
    EXPECT_THAT(Decode(Bytes(whole.substr(0, size)), push), StatusIs(Code::kInvalidArgument))
        << size;
  }
  Push push;
  EXPECT_THAT(Decode(Bytes(whole + "x"), push), StatusIs(Code::kInvalidArgument));
}

TEST(Messages, WithAWrongCountAllocateNoMemory) {
  std::string put = Encode(Put{});
  put[3] = '\x7F';  // 2 billion tensors
  Put message;
  EXPECT_THAT(Decode(Bytes(put), message), StatusIs(Code::kInvalidArgument));
  EXPECT_EQ(message.tensors.capacity(), 0U);
}

TEST(Messages, WithAnUnknownEnumValueAreRefused) {
  std::string pull = Encode(Pull{});
  pull[0] = 2;
  Pull message;
  EXPECT_THAT(Decode(Bytes(pull), message), StatusIs(Code::kInvalidArgument));
}

TEST(Messages, KeepCodeAndTextOfAFailure) {
  const Status failure = NotFound("table {} was not declared", 7);
  EXPECT_EQ(DecodeRefusal(Bytes(Encode(failure))), failure);
  EXPECT_THAT(DecodeRefusal(Bytes(Encode(Ok()))), StatusIs(Code::kInternal));
  EXPECT_THAT(DecodeRefusal({}), StatusIs(Code::kInternal));
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
  EXPECT_OK(reader.End());
}

TEST(TensorReader, RefusesToReadBeyondTheEnd) {
  alignas(64) std::array<std::byte, 64> bytes{};
  EXPECT_THAT(TensorReader(bytes).Take<int64_t>(9), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(TensorReader(bytes).Take<int64_t>(SIZE_MAX / 4), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(TensorReader(bytes).End(), StatusIs(Code::kInvalidArgument));
}

}  // namespace
}  // namespace edl::wire
