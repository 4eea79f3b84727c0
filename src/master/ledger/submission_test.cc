#include "master/ledger/submission.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

namespace fs = std::filesystem;

const std::string kFirst(32, 'a');
const std::string kSecond(32, 'b');

class SubmissionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "submission.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static job::JobSpec Of(const std::string& id, int64_t resume_number = 0, int64_t version = 0) {
    job::JobSpec spec = WorkersOnly(1);
    spec.submission_id = id;
    spec.resumed = resume_number > 0;
    spec.resume_number = resume_number;
    spec.resume_version = version;
    return spec;
  }

  // Writes the ledger of a submission with so many completed batches.
  void Write(const std::string& id, int version) {
    Ledger ledger = *OpenLedger(folder_, Of(id));
    ledger.PutMeta("counters", fmt::format(R"({{"version":{}}})", version));
    ASSERT_EQ(ledger.Commit(), Ok());
  }

  fs::path folder_;
};

TEST_F(SubmissionTest, GoesOnWithItsOwnLedger) {
  Write(kFirst, 7);

  Ledger ledger = *OpenLedger(folder_, Of(kFirst));

  EXPECT_TRUE(ledger.Meta()->contains("counters"));
}

TEST_F(SubmissionTest, MovesTheLedgerAndCheckpointsOfAnotherOneAside) {
  Write(kFirst, 7);
  fs::create_directory(folder_ / "checkpoints");
  std::ofstream(folder_ / "checkpoints" / "part") << "x";
  std::ofstream(folder_ / "ledger.sqlite-shm") << "x";

  Ledger ledger = *OpenLedger(folder_, Of(kSecond));

  EXPECT_EQ(ledger.Meta()->size(), 1U) << "it knows its submission and nothing else";
  const fs::path old = folder_ / ("old-" + kFirst);
  EXPECT_TRUE(Ledger::ReadCopy((old / "ledger.sqlite").string())->Meta()->contains("counters"));
  EXPECT_TRUE(fs::exists(old / "checkpoints" / "part"));
  EXPECT_TRUE(fs::exists(old / "ledger.sqlite-shm"));
  EXPECT_FALSE(fs::exists(folder_ / "checkpoints"));
}

TEST_F(SubmissionTest, MovesALedgerWithoutAnIdAside) {
  {
    Ledger older = *Ledger::Open((folder_ / "ledger.sqlite").string());
    older.PutMeta("job", "{}");
    ASSERT_EQ(older.Commit(), Ok());
  }
  fs::create_directory(folder_ / "old-unknown");

  ASSERT_OK(OpenLedger(folder_, Of(kSecond)));

  EXPECT_TRUE(fs::exists(folder_ / "old-unknown.1" / "ledger.sqlite"));
}

TEST_F(SubmissionTest, IsResumedWithALedgerThatKnowsEnough) {
  Write(kFirst, 7);

  EXPECT_OK(OpenLedger(folder_, Of(kFirst, 1, 7)));
}

TEST_F(SubmissionTest, IsNotResumedWithALedgerThatKnowsLessThanTheStatus) {
  Write(kFirst, 7);

  const Status status = OpenLedger(folder_, Of(kFirst, 1, 8)).status();

  EXPECT_THAT(status, StatusIs(Code::kFailedPrecondition));
  EXPECT_NE(status.message().find("--resume_with_lost_progress"), std::string::npos) << status;
  EXPECT_OK(OpenLedger(folder_, Of(kFirst, 1, 0))) << "as typed with that flag";
}

TEST_F(SubmissionTest, IsNotResumedWithoutALedgerOnceSomethingWasDone) {
  EXPECT_THAT(OpenLedger(folder_, Of(kFirst, 1, 8)), StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(OpenLedger(folder_, Of(kFirst, 1, 8)), StatusIs(Code::kFailedPrecondition))
      << "the empty ledger of the first attempt is none";
}

TEST_F(SubmissionTest, IsNotResumedWithAnothersLedger) {
  Write(kFirst, 7);

  EXPECT_THAT(OpenLedger(folder_, Of(kSecond, 1, 7)), StatusIs(Code::kFailedPrecondition));
  EXPECT_OK(OpenLedger(folder_, Of(kFirst))) << "and it stays where it is";
}

TEST_F(SubmissionTest, OfAnOlderVersionIsResumedWithoutAnId) {
  {
    Ledger older = *Ledger::Open((folder_ / "ledger.sqlite").string());
    older.PutMeta("job", "{}");
    ASSERT_EQ(older.Commit(), Ok());
  }

  EXPECT_OK(OpenLedger(folder_, Of("", 1)));
}

}  // namespace
}  // namespace edl::master
