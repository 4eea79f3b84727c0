#include "reconciler/process/versioned_store.h"

#include <string>

#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

const kube::ObjectKey kKey{"ns", "pod"};

class VersionedStoreTest : public testing::Test {
 protected:
  std::string Value() const {
    const auto* entry = store_.Find(kKey);
    return entry == nullptr ? "none" : entry->value;
  }

  VersionedStore<std::string> store_;
};

TEST_F(VersionedStoreTest, T_E1_Q8_KnowsAnOwnWriteBeforeTheWatchReportsIt) {
  EXPECT_TRUE(store_.Wrote(kKey, "uid", "5", "written"));
  EXPECT_EQ(Value(), "written");

  EXPECT_FALSE(store_.Watched(kKey, "uid", "5", "written"));
  EXPECT_TRUE(store_.Watched(kKey, "uid", "6", "changed"));
  EXPECT_EQ(Value(), "changed");
}

TEST_F(VersionedStoreTest, T_E1_Q8_AnOlderStateOfTheWatchDoesNotReplaceAnOwnWrite) {
  store_.Watched(kKey, "uid", "3", "old");
  store_.Wrote(kKey, "uid", "5", "written");

  EXPECT_FALSE(store_.Watched(kKey, "uid", "4", "between"));

  EXPECT_EQ(Value(), "written");
}

TEST_F(VersionedStoreTest, T_E1_AnOwnWriteThatTheWatchHasPassedIsIgnored) {
  // The answer to a create arrives after the watch has reported the object and its deletion.
  store_.Watched(kKey, "uid", "5", "created");
  store_.WatchedDeletion(kKey, "uid", "6");

  EXPECT_FALSE(store_.Wrote(kKey, "uid", "5", "created"));

  EXPECT_EQ(Value(), "none");
}

TEST_F(VersionedStoreTest, T_E1_AListRemovesWhatIsGoneAndKeepsNewerOwnWrites) {
  const kube::ObjectKey mine{"ns", "mine"};
  store_.Watched(kKey, "uid", "3", "old");
  store_.Wrote(mine, "uid-2", "9", "written");

  const auto gone = store_.Listed({}, "8");

  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone.front().first, kKey);
  EXPECT_NE(store_.Find(mine), nullptr);
  EXPECT_EQ(store_.Listed({}, "9").size(), 1U);
}

TEST_F(VersionedStoreTest, TheDeletionOfAPredecessorDoesNotRemoveItsSuccessor) {
  store_.Watched(kKey, "first", "3", "old");
  store_.Wrote(kKey, "second", "7", "new");

  EXPECT_FALSE(store_.WatchedDeletion(kKey, "first", "5"));

  EXPECT_EQ(Value(), "new");
}

TEST_F(VersionedStoreTest, FollowsTheWatchIfVersionsAreNotNumbers) {
  EXPECT_FALSE(store_.Wrote(kKey, "uid", "abc", "written"));
  EXPECT_TRUE(store_.Watched(kKey, "uid", "abc", "watched"));
  EXPECT_TRUE(store_.Watched(kKey, "uid", "abd", "changed"));
  EXPECT_EQ(Value(), "changed");
  EXPECT_TRUE(store_.WatchedDeletion(kKey, "uid", "abe"));
}

TEST_F(VersionedStoreTest, K45_FollowsTheClusterAfterItsVersionsWentBack) {
  const kube::ObjectKey mine{"ns", "mine"};
  store_.Watched(kKey, "uid", "500", "later");
  store_.Wrote(mine, "uid-2", "510", "written");

  const auto gone = store_.Listed({kKey}, "100");

  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone.front().first, mine);
  EXPECT_TRUE(store_.Watched(kKey, "uid", "90", "restored"));
  EXPECT_EQ(Value(), "restored");
  EXPECT_TRUE(store_.Wrote(kKey, "uid", "101", "written again"));
  EXPECT_EQ(Value(), "written again");
}

}  // namespace
}  // namespace edl::reconciler
