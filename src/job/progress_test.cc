#include "job/progress.h"

#include <gtest/gtest.h>

namespace edl::job {
namespace {

JobView ViewOf(int64_t done, int64_t epochs) {
  JobView view;
  view.datasets.push_back({.name = "train",
                           .task_type = "training",
                           .size = 300,
                           .epochs = epochs,
                           .records_done = done,
                           .records_total = 300 * epochs});
  return view;
}

TEST(Progress, IsUnknownBeforeADatasetIsRegistered) { EXPECT_EQ(ProgressOf(JobView()), ""); }

TEST(Progress, IsAHundredOnlyWhenEveryRecordIsDone) {
  EXPECT_EQ(ProgressOf(ViewOf(0, 1)), "0 %");
  EXPECT_EQ(ProgressOf(ViewOf(299, 1)), "99 %");
  EXPECT_EQ(ProgressOf(ViewOf(300, 1)), "100 %");
}

TEST(Progress, OfDataWithoutEndIsTheNumberOfRecords) {
  EXPECT_EQ(ProgressOf(ViewOf(450, 0)), "450 records");
}

TEST(Progress, IsReadFromTheLastMessageOfALog) {
  const std::string log = "[t] [INFO] [f:1:g] " + ProgressMessage("40 %") + "\nother\n[t] " +
                          ProgressMessage("41 %") + "\nmore\n";
  EXPECT_EQ(LastProgress(log), "41 %");
  EXPECT_EQ(LastProgress("nothing"), "");
}

TEST(Progress, IsNotReadFromALineThatIsCutOff) {
  EXPECT_EQ(LastProgress(ProgressMessage("4 %") + "\n[t] data shards: 5"), "4 %");
}

}  // namespace
}  // namespace edl::job
