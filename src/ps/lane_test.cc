#include "ps/lane.h"

#include <cstring>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "wire/frame.h"

namespace edl::ps {
namespace {

using Outcome = wire::PushOutcome;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr wire::ShardKey kShard{
    .ledger = job::LedgerId(1), .dataset = job::DatasetId(1), .generation = 1};
constexpr job::LeaseId kLease(5);

// The tensor part of a frame.
class Tensors {
 public:
  template <typename Value>
  Tensors& Add(const std::vector<Value>& values) {
    const size_t begin = wire::AlignedUp(bytes_.size());
    bytes_.resize(begin + values.size() * sizeof(Value));
    std::memcpy(bytes_.data() + begin, values.data(), values.size() * sizeof(Value));
    return *this;
  }
  operator std::span<const std::byte>() const { return bytes_; }  // NOLINT: implicit on purpose

 private:
  std::vector<std::byte> bytes_;
};

// One lane that has all buckets, with a table "t" of dimension 2 and a tensor "d" of 3 values.
class LaneTest : public testing::Test {
 protected:
  LaneTest() { Declare(R"({"name": "SGD"})"); }

  void Declare(const std::string& optimizer, const std::string& consistency = "{}") {
    const auto declaration =
        ParseDeclaration(R"({"consistency": )" + consistency +
                         R"(, "tables": [{"name": "t", "dim": 2, "initializer": {"name": "zeros"},
                        "optimizer": )" +
                         optimizer + R"(}],
            "tensors": [{"name": "d", "size": 3, "optimizer": {"name": "SGD"}},
                        {"name": "mean", "size": 1}]})");
    ASSERT_OK(declaration);
    ASSERT_OK_AND_ASSIGN(declared_, lane_->Declare(*declaration));
  }

  void PutAll() {
    ASSERT_EQ(
        lane_->Put(declared_, {.tensors = {0, 1}}, Tensors().Add<float>({1, 2, 3}).Add<float>({10}))
            ->taken,
        2U);
  }

  std::vector<float> Pull(const std::vector<int64_t>& ids,
                          wire::Pull::Unknown unknown = wire::Pull::Unknown::kMake) {
    const Tensors request = Tensors().Add(ids);
    const auto count = static_cast<uint32_t>(ids.size());
    const auto plan =
        lane_->Plan(declared_, {.unknown = unknown, .tables = {{.ids = count}}}, request);
    wire::Buffer out(plan->bytes);
    lane_->Pull(*plan, out.data());
    const auto* const rows = reinterpret_cast<const float*>(out.data());
    return {rows, rows + ids.size() * 2};
  }

  std::vector<float> PullTensor(uint32_t tensor) {
    const auto plan = lane_->Plan(declared_, {.tensors = {tensor}}, {});
    wire::Buffer out(plan->bytes);
    lane_->Pull(*plan, out.data());
    const auto* const values = reinterpret_cast<const float*>(out.data());
    return {values, values + declared_.tensors[tensor]->values()};
  }

  // A gradient of -1 for each value of the rows, with learning rate 1.
  Result<wire::PushAnswer> Push(uint64_t batch, const std::vector<int64_t>& ids,
                                bool refused = false, uint64_t version = wire::Push::kNoVersion) {
    const auto count = static_cast<uint32_t>(ids.size());
    return lane_->Push(declared_,
                       {.lease = kLease,
                        .shard = kShard,
                        .batch = batch,
                        .refused = refused,
                        .version = version,
                        .tables = {{.ids = count, .learning_rate = 1}}},
                       Tensors().Add(ids).Add(std::vector<float>(ids.size() * 2, -1)));
  }

  void OpenShard() { ASSERT_OK(lane_->Open({.lease = kLease, .shard = kShard})); }

  std::unique_ptr<Lane> lane_ = std::make_unique<Lane>(wire::Placement(1), job::LaneInJob(0));
  DeclaredParameters declared_;
};

TEST_F(LaneTest, AppliesABatchOnceHoweverOftenItComes) {
  OpenShard();
  EXPECT_EQ(Push(0, {7, -7})->outcome, Outcome::kApplied);
  EXPECT_EQ(Push(0, {7, -7})->outcome, Outcome::kAlready);
  const auto ahead = Push(2, {7, -7});
  EXPECT_EQ(ahead->outcome, Outcome::kAhead);
  EXPECT_EQ(ahead->watermark, 1U);
  EXPECT_THAT(Pull({7, -7}), Each(1.0F));
  EXPECT_EQ(lane_->version(), 1U);
}

TEST_F(LaneTest, RejectsABatchOfAShardThatIsNotOpen) {
  EXPECT_EQ(Push(0, {7})->outcome, Outcome::kNotOpen);
  EXPECT_EQ(lane_->state().parameters.rows(), 0U);
}

TEST_F(LaneTest, CountsARefusedBatchAsDoneAndChangesNothing) {
  OpenShard();
  EXPECT_EQ(Push(0, {7}, true)->outcome, Outcome::kApplied);
  EXPECT_EQ(Push(0, {7})->outcome, Outcome::kAlready);
  EXPECT_EQ(lane_->state().parameters.rows(), 0U);
  EXPECT_EQ(lane_->refused(), 1U);
  EXPECT_EQ(lane_->version(), 0U);
}

TEST_F(LaneTest, AppliesToTheBucketsThatLackABatchOnly) {
  // The bucket of id 1 has applied batch 0; the others have not.
  const wire::Bucket ahead = wire::BucketOf(1);
  ASSERT_NE(wire::BucketOf(2), ahead);
  lane_->state().watermarks.Restore(
      {.first = ahead, .end = ahead + 1U, .shard = kShard, .lease = kLease, .watermark = 1});
  lane_->state().watermarks.Settle();
  OpenShard();

  EXPECT_EQ(Push(0, {1, 2})->outcome, Outcome::kApplied);
  EXPECT_EQ(Push(1, {1, 2})->outcome, Outcome::kApplied);

  EXPECT_THAT(Pull({1, 2}), ElementsAre(1, 1, 2, 2));
}

TEST_F(LaneTest, KeepsTheStepsOfBucketsThatDiffer) {
  lane_ = std::make_unique<Lane>(wire::Placement(1), job::LaneInJob(0));
  Declare(R"({"name": "Adam"})");
  const wire::Bucket ahead = wire::BucketOf(1);
  lane_->state().watermarks.Restore(
      {.first = ahead, .end = ahead + 1U, .shard = kShard, .lease = kLease, .watermark = 1});
  lane_->state().watermarks.Settle();
  OpenShard();
  ASSERT_EQ(Push(0, {1, 2})->outcome, Outcome::kApplied);  // of 2 alone
  ASSERT_EQ(Push(1, {1, 2})->outcome, Outcome::kApplied);

  const std::vector<float> rows = Pull({1, 2});
  // Adam moves by the learning rate in its first step, and as far in its second.
  EXPECT_NEAR(rows[0], 1, 1e-5);
  EXPECT_NEAR(rows[2], 2, 1e-5);
}

TEST_F(LaneTest, HoldsTensorsFromTheirFirstValueOn) {
  EXPECT_THAT(lane_->Plan(declared_, {.tensors = {0}}, {}), StatusIs(Code::kNotFound));
  PutAll();
  EXPECT_THAT(PullTensor(0), ElementsAre(1, 2, 3));
  EXPECT_EQ(lane_->Put(declared_, {.tensors = {0}}, Tensors().Add<float>({7, 7, 7}))->taken, 0U);
  EXPECT_THAT(PullTensor(0), ElementsAre(1, 2, 3));
}

TEST_F(LaneTest, TrainsTensorsAndAddsToThoseThatAreNotTrained) {
  PutAll();
  OpenShard();
  const wire::Push push{.lease = kLease,
                        .shard = kShard,
                        .tensors = {{.tensor = 0, .learning_rate = 0.5F}, {.tensor = 1}}};
  const Tensors gradients = Tensors().Add<float>({2, 4, 6}).Add<float>({-3});
  ASSERT_EQ(lane_->Push(declared_, push, gradients)->outcome, Outcome::kApplied);
  ASSERT_EQ(lane_->Push(declared_, push, gradients)->outcome, Outcome::kAlready);
  EXPECT_THAT(PullTensor(0), Each(0.0F));
  EXPECT_THAT(PullTensor(1), ElementsAre(7));
}

TEST_F(LaneTest, CreatesNoRowsForPullsThatOnlyRead) {
  EXPECT_THAT(Pull({1, 2}, wire::Pull::Unknown::kTell), Each(0.0F));
  EXPECT_EQ(lane_->state().parameters.rows(), 0U);
}

TEST_F(LaneTest, RejectsMalformedMessagesAndChangesNothing) {
  OpenShard();
  const auto refused = [&](const wire::Push& push, std::span<const std::byte> tensors) {
    return lane_->Push(declared_, push, tensors).status();
  };
  wire::Push push{.lease = kLease, .shard = kShard, .tables = {{.table = 9, .ids = 1}}};
  EXPECT_THAT(refused(push, {}).message(), HasSubstr("table 9 was not declared"));
  push.tables = {{.table = 0, .ids = 1}};
  EXPECT_THAT(refused(push, {}), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(refused(push, Tensors().Add<int64_t>({1}).Add<float>({1})),
              StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(refused(push, Tensors().Add<int64_t>({1}).Add(std::vector<float>(17))),
              StatusIs(Code::kInvalidArgument));
  push.tables = {{.table = 0, .ids = UINT32_MAX}};
  EXPECT_THAT(refused(push, Tensors().Add<int64_t>({1})), StatusIs(Code::kInvalidArgument));
  push = {.lease = kLease, .shard = kShard, .tensors = {{.tensor = 0}}};
  const Status no_value = refused(push, Tensors().Add<float>({1, 1, 1}));
  EXPECT_THAT(no_value, StatusIs(Code::kNotFound)) << "trainers rely on this code to put a value";
  EXPECT_THAT(no_value.message(), HasSubstr("'d' has no value yet"));
  EXPECT_EQ(Push(0, {1})->outcome, Outcome::kApplied) << "a refused push was counted";
}

TEST_F(LaneTest, RejectsATableThatWasDeclaredWithOtherSettings) {
  const auto other = ParseDeclaration(R"({"tables": [{"name": "t", "dim": 3}]})");
  const auto names = lane_->Declare(*other);
  EXPECT_THAT(names, StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(names.status().message(), HasSubstr("table 't'"));
}

TEST_F(LaneTest, ARejectedDeclarationChangesNothing) {
  const auto declare = [](Lane& lane, const std::string& text) {
    return lane.Declare(*ParseDeclaration(text)).status();
  };
  // It creates no table, not even those before the rejected one.
  EXPECT_THAT(declare(*lane_, R"({"tables": [{"name": "u", "dim": 1}, {"name": "t", "dim": 3}]})"),
              StatusIs(Code::kFailedPrecondition));
  EXPECT_OK(declare(*lane_, R"({"tables": [{"name": "u", "dim": 5}]})"));
  // Its consistency is not set.
  Lane fresh(wire::Placement(1), job::LaneInJob(0));
  EXPECT_THAT(declare(fresh, R"({"consistency": {"gradients": 3},
      "tables": [{"name": "t", "dim": 2}, {"name": "u", "dim": 1, "most_bytes": 1}]})"),
              StatusIs(Code::kInvalidArgument));
  EXPECT_OK(declare(fresh, R"({"tables": [{"name": "t", "dim": 2}]})"));
}

TEST_F(LaneTest, RejectsABoundThatIsTooSmallAndNamesTheLeast) {
  const auto declare = [](const std::string& most_bytes) {
    const auto declaration = ParseDeclaration(
        R"({"tables": [{"name": "b", "dim": 100000, "optimizer": {"name": "Adam"},
            "most_bytes": )" +
        most_bytes + "}]}");
    return Lane(wire::Placement(16), job::LaneInJob(3)).Declare(*declaration).status();
  };
  const Status refused = declare("1048576");
  EXPECT_THAT(refused, StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(refused.message(), HasSubstr("table 'b': most_bytes=1048576 is too little"));
  const std::string least = refused.message().substr(refused.message().rfind(' ') + 1);
  EXPECT_OK(declare(least));
}

TEST_F(LaneTest, RejectsTooManyTensorValues) {
  std::string tensors;
  for (int i = 0; i < 5; ++i) {
    tensors += fmt::format(R"({}{{"name": "d{}", "size": 4294967296}})", i > 0 ? "," : "", i);
  }
  const auto declaration = ParseDeclaration(R"({"tensors": [)" + tensors + "]}");
  Lane lane(wire::Placement(1024), job::LaneInJob(0));
  EXPECT_THAT(lane.Declare(*declaration), StatusIs(Code::kResourceExhausted));
}

TEST_F(LaneTest, RejectsNonFiniteLearningRates) {
  OpenShard();
  PutAll();
  for (const float rate : {INFINITY, -INFINITY, NAN}) {
    const wire::Push push{
        .lease = kLease, .shard = kShard, .tables = {{.ids = 1, .learning_rate = rate}}};
    const auto tensors = Tensors().Add<int64_t>({1}).Add<float>({1, 1});
    EXPECT_THAT(lane_->Push(declared_, push, tensors), StatusIs(Code::kInvalidArgument));
    const wire::Push dense{
        .lease = kLease, .shard = kShard, .tensors = {{.tensor = 0, .learning_rate = rate}}};
    EXPECT_THAT(lane_->Push(declared_, dense, Tensors().Add<float>({1, 1, 1})),
                StatusIs(Code::kInvalidArgument));
  }
  EXPECT_EQ(Push(0, {1})->outcome, Outcome::kApplied) << "a refused push was counted";
}

TEST_F(LaneTest, RejectsALearningRateOfZeroForFtrl) {
  lane_ = std::make_unique<Lane>(wire::Placement(1), job::LaneInJob(0));
  Declare(R"({"name": "Ftrl"})");
  OpenShard();
  const wire::Push push{.lease = kLease, .shard = kShard, .tables = {{.ids = 1}}};
  const auto tensors = Tensors().Add<int64_t>({1}).Add<float>({1, 1});
  EXPECT_THAT(lane_->Push(declared_, push, tensors).status().message(),
              HasSubstr("above 0 for Ftrl"));
}

// Buckets that were restored from different lanes may differ in the applied batches of a shard.
TEST_F(LaneTest, RowsGrowOldByPushesAlsoWhereBucketsDiffer) {
  lane_ = std::make_unique<Lane>(wire::Placement(1), job::LaneInJob(0));
  const auto declaration = ParseDeclaration(
      R"({"tables": [{"name": "t", "dim": 2, "evict_after": 10,
                      "initializer": {"name": "zeros"}, "optimizer": {"name": "Adagrad"}}]})");
  declared_ = *lane_->Declare(*declaration);
  OpenShard();
  for (uint64_t batch = 0; batch < 50; ++batch) ASSERT_OK(Push(batch, {1, 2}));
  const wire::ShardKey differs{.ledger = job::LedgerId(1), .dataset = job::DatasetId(9)};
  const wire::Bucket ahead = wire::BucketOf(1);
  lane_->state().watermarks.Restore(
      {.first = ahead, .end = ahead + 1U, .shard = differs, .lease = kLease, .watermark = 1});
  lane_->state().watermarks.Settle();
  const wire::Push again{
      .lease = kLease, .shard = differs, .batch = 0, .tables = {{.ids = 2, .learning_rate = 1}}};
  ASSERT_EQ(
      lane_->Push(declared_, again, Tensors().Add<int64_t>({1, 2}).Add(std::vector<float>(4, -1)))
          ->outcome,
      Outcome::kApplied);
  for (uint64_t batch = 50; batch < 55; ++batch) ASSERT_OK(Push(batch, {3}));
  EXPECT_EQ(lane_->state().parameters.evicted(), 0U)
      << "rows that were trained a moment ago were evicted";
  for (uint64_t batch = 55; batch < 90; ++batch) ASSERT_OK(Push(batch, {3, 4, 5}));
  EXPECT_EQ(lane_->state().parameters.evicted(), 2U);
}

TEST_F(LaneTest, HasItsOwnBlocksOfATensorOnly) {
  const auto declaration = ParseDeclaration(R"({"tensors": [{"name": "big", "size": 100000}]})");
  const wire::Placement placement(3);
  size_t sum = 0;
  for (uint32_t place = 0; place < 3; ++place) {
    Lane lane(placement, job::LaneInJob(place));
    sum += lane.Declare(*declaration)->tensors[0]->values();
  }
  EXPECT_EQ(sum, 100000U);
}

// Rounds of two gradients.
class RoundTest : public LaneTest {
 protected:
  RoundTest() {
    lane_ = std::make_unique<Lane>(wire::Placement(1), job::LaneInJob(0));
    Declare(R"({"name": "SGD"})", R"({"gradients": 2, "tolerance": 1})");
    OpenShard();
  }
  Outcome PushTensor(uint64_t batch, float gradient) {
    return lane_
        ->Push(declared_,
               {.lease = kLease,
                .shard = kShard,
                .batch = batch,
                .tensors = {{.tensor = 0, .learning_rate = 1}}},
               Tensors().Add<float>({gradient, gradient, gradient}))
        ->outcome;
  }
};

TEST_F(RoundTest, SumsRowsAndStepsWhenItIsFull) {
  EXPECT_EQ(Push(0, {1, 2})->outcome, Outcome::kApplied)
      << "the push is answered before the round is full";
  EXPECT_THAT(Pull({1, 2}), Each(0.0F));
  EXPECT_EQ(lane_->version(), 0U);

  EXPECT_EQ(Push(1, {1})->outcome, Outcome::kApplied);

  EXPECT_THAT(Pull({1, 2}), ElementsAre(2, 2, 1, 1));
  EXPECT_EQ(lane_->version(), 1U);
}

TEST_F(RoundTest, AveragesTensorsOverTheirContributors) {
  PutAll();
  ASSERT_EQ(PushTensor(0, 1), Outcome::kApplied);
  EXPECT_THAT(PullTensor(0), ElementsAre(1, 2, 3));
  ASSERT_EQ(PushTensor(1, 3), Outcome::kApplied);
  EXPECT_THAT(PullTensor(0), ElementsAre(-1, 0, 1));
}

TEST_F(RoundTest, TakesABatchOnce) {
  ASSERT_EQ(Push(0, {1})->outcome, Outcome::kApplied);
  ASSERT_EQ(Push(0, {1})->outcome, Outcome::kAlready);
  EXPECT_THAT(Pull({1}), Each(0.0F)) << "the same batch does not fill it";
}

TEST_F(RoundTest, RejectsAStalePushAndAcceptsItWithNewParameters) {
  for (uint64_t batch = 0; batch < 4; ++batch) ASSERT_OK(Push(batch, {1}));
  ASSERT_EQ(lane_->version(), 2U);

  const auto stale = Push(4, {1}, false, 0);
  EXPECT_EQ(stale->outcome, Outcome::kStale);
  EXPECT_EQ(stale->watermark, 4U);
  EXPECT_EQ(Push(3, {1}, false, 0)->outcome, Outcome::kAlready)
      << "a batch that was applied is acknowledged, however old";
  EXPECT_EQ(Push(4, {1}, false, 1)->outcome, Outcome::kApplied) << "one round old is tolerated";
}

TEST_F(RoundTest, ClosesWithFewerGradientsOnFlush) {
  PutAll();
  ASSERT_EQ(PushTensor(0, 1), Outcome::kApplied);
  lane_->Flush();
  EXPECT_THAT(PullTensor(0), ElementsAre(0, 1, 2)) << "the average of one";
  lane_->Flush();
  EXPECT_EQ(lane_->version(), 1U) << "an empty round must not count as a step";
  EXPECT_EQ(lane_->state().rounds.ContributedBounds(), (std::pair<uint64_t, uint64_t>(1, 1)));
}

TEST_F(RoundTest, IsNotFilledByABatchThatWasRefused) {
  ASSERT_OK(Push(0, {1}));
  ASSERT_EQ(Push(1, {1}, true)->outcome, Outcome::kApplied);
  EXPECT_THAT(Pull({1}), Each(0.0F));
  ASSERT_OK(Push(2, {1}));
  EXPECT_THAT(Pull({1}), Each(2.0F));
}

// The round of a restored bucket may be open while the same round of others is closed.
TEST_F(RoundTest, IsSeparateForEachBucket) {
  const wire::Bucket ahead = wire::BucketOf(1);
  lane_ = std::make_unique<Lane>(wire::Placement(1), job::LaneInJob(0));
  Declare(R"({"name": "SGD"})", R"({"gradients": 2})");
  lane_->state().watermarks.Restore(
      {.first = ahead, .end = ahead + 1U, .shard = kShard, .lease = kLease, .watermark = 1});
  lane_->state().watermarks.Settle();
  OpenShard();

  ASSERT_OK(Push(0, {1, 2}));  // of 2 alone
  ASSERT_OK(Push(1, {1, 2}));
  EXPECT_THAT(Pull({1, 2}), ElementsAre(0, 0, 2, 2)) << "the round of 1 has one gradient";
  ASSERT_OK(Push(2, {1, 2}));
  EXPECT_THAT(Pull({1, 2}), ElementsAre(2, 2, 2, 2));
}

TEST_F(LaneTest, DividesTheLearningRateByTheAgeOfTheParameters) {
  lane_ = std::make_unique<Lane>(wire::Placement(1), job::LaneInJob(0));
  Declare(R"({"name": "SGD"})", R"({"modulate": true})");
  OpenShard();
  ASSERT_OK(Push(0, {1}, false, 0));
  EXPECT_THAT(Pull({1}), Each(1.0F)) << "nothing came between";
  for (uint64_t batch = 1; batch < 4; ++batch) ASSERT_OK(Push(batch, {2}));
  ASSERT_OK(Push(4, {1}, false, 0));
  EXPECT_THAT(Pull({1}), Each(1.25F)) << "four pushes came between";
}

}  // namespace
}  // namespace edl::ps
