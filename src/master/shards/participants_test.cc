#include "master/shards/participants.h"

#include <gtest/gtest.h>

namespace edl::master {
namespace {

constexpr Incarnation kOne(1);
constexpr Incarnation kTwo(2);
constexpr ReplicaRef kWorker{job::Role::kWorker, 0};
constexpr ReplicaRef kOther{job::Role::kWorker, 1};

TEST(Participants, KnowWhenOnlyWaitingSessionsHoldLeases) {
  Participants participants;
  participants.AddLease(kOne, kWorker);
  participants.AddLease(kOne, kWorker);
  participants.AddLease(kTwo, kOther);
  EXPECT_FALSE(participants.AllHoldersWait());

  participants.AddWait(kOne, kWorker);
  EXPECT_FALSE(participants.AllHoldersWait());
  participants.RemoveLease(kTwo, kOther);
  EXPECT_TRUE(participants.AllHoldersWait());
  EXPECT_TRUE(participants.IsOnlyHolder(kOne));

  participants.AddWait(kOne, kWorker);
  participants.RemoveWait(kOne, kWorker);
  EXPECT_TRUE(participants.AllHoldersWait());
  participants.RemoveWait(kOne, kWorker);
  EXPECT_FALSE(participants.AllHoldersWait());
  participants.RemoveLease(kOne, kWorker);
  participants.RemoveLease(kOne, kWorker);
  EXPECT_TRUE(participants.AllHoldersWait());
  EXPECT_FALSE(participants.any_holders());
}

TEST(Participants, KnowWhetherOthersTakePart) {
  Participants participants;
  EXPECT_FALSE(participants.AnyOtherThan(kWorker));
  participants.AddWait(kOne, kWorker);
  EXPECT_FALSE(participants.AnyOtherThan(kWorker));
  EXPECT_TRUE(participants.AnyOtherThan(kOther));
  participants.AddLease(kTwo, kOther);
  EXPECT_TRUE(participants.AnyOtherThan(kWorker));
  participants.RemoveLease(kTwo, kOther);
  EXPECT_FALSE(participants.AnyOtherThan(kWorker));
}

}  // namespace
}  // namespace edl::master
