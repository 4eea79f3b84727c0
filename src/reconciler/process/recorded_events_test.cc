#include "reconciler/process/recorded_events.h"

#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

JobEvent Event(const std::string& subject, const std::string& reason, const std::string& message) {
  return {.reason = reason, .message = message, .subject = subject};
}

TEST(RecordedEvents, AStateIsNewOnce) {
  RecordedEvents recorded;
  EXPECT_TRUE(recorded.IsNew(Event("pod", "Unschedulable", "no node")));
  recorded.Add(Event("pod", "Unschedulable", "no node"));
  EXPECT_FALSE(recorded.IsNew(Event("pod", "Unschedulable", "no node")));
  EXPECT_TRUE(recorded.IsNew(Event("pod", "ErrImagePull", "no node")));
  EXPECT_TRUE(recorded.IsNew(Event("other", "Unschedulable", "no node")));
}

TEST(RecordedEvents, RemembersOneMessageOfEachReason) {
  RecordedEvents recorded;
  for (int i = 0; i < 1000; ++i) {
    const JobEvent event = Event("pod", "Unschedulable", fmt::format("0/{} nodes", i));
    EXPECT_TRUE(recorded.IsNew(event));
    recorded.Add(event);
  }
  EXPECT_EQ(recorded.size(), 1u);
}

TEST(RecordedEvents, ForgetsSubjectsThatAreGone) {
  RecordedEvents recorded;
  for (const char* subject : {"a", "b", "c"}) recorded.Add(Event(subject, "Unschedulable", "why"));
  recorded.KeepOnly({"b", "d"});
  EXPECT_EQ(recorded.size(), 1u);
  EXPECT_FALSE(recorded.IsNew(Event("b", "Unschedulable", "why")));
}

}  // namespace
}  // namespace edl::reconciler
