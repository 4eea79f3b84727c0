#include "kube/event_recorder.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "kube/testing/api_server.h"
#include "kube/testing/fake_timing.h"

namespace edl::kube {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class EventRecorderTest : public testing::Test {
 protected:
  static Object Pod(const std::string& name) {
    Object pod(kPods, {.ns = "ns", .name = name});
    pod.metadata()["uid"] = "u-" + name;
    pod.set_resource_version("7");
    return pod;
  }
  std::vector<Object> Events() {
    Client client(connection_, fake_.timing());
    auto list = client.List(kEvents, "");
    EXPECT_OK(list);
    return std::move(list->items);
  }

  ApiServer server_;
  FakeTiming fake_;
  Connection connection_{server_.config(), fake_.clock(), {}};
  EventRecorder recorder_{connection_,
                          fake_.timing(),
                          {.component = "elasticdl-master", .instance = "master-0", .burst = 3}};
};

TEST_F(EventRecorderTest, RecordsReasonNoteAndObject) {
  recorder_.Record(Pod("worker-0"), EventType::kWarning, "OutOfMemory", "worker 0 needs more");
  EXPECT_THAT(Events(), IsEmpty());

  recorder_.Flush();

  ASSERT_THAT(Events(), SizeIs(1));
  nlohmann::json event = Events()[0].fields();
  EXPECT_EQ(event["metadata"]["namespace"], "ns");
  event.erase("metadata");
  EXPECT_EQ(event, nlohmann::json::parse(R"({
    "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "OutOfMemory",
    "message": "worker 0 needs more", "count": 1,
    "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "worker-0",
                       "uid": "u-worker-0", "resourceVersion": "7"},
    "source": {"component": "elasticdl-master"}, "reportingComponent": "elasticdl-master",
    "reportingInstance": "master-0",
    "firstTimestamp": "1970-01-02T00:00:00Z", "lastTimestamp": "1970-01-02T00:00:00Z"})"));
}

TEST_F(EventRecorderTest, CountsRepeatedEvents) {
  recorder_.Record(Pod("a"), EventType::kNormal, "Relaunched", "once more");
  recorder_.Record(Pod("a"), EventType::kNormal, "Relaunched", "once more");
  recorder_.Flush();
  fake_.clock().Advance(std::chrono::seconds(5));
  recorder_.Record(Pod("a"), EventType::kNormal, "Relaunched", "once more");
  recorder_.Record(Pod("b"), EventType::kNormal, "Relaunched", "once more");
  recorder_.Flush();

  const std::vector<Object> events = Events();
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].fields()["count"], 3);
  EXPECT_EQ(events[0].fields()["firstTimestamp"], "1970-01-02T00:00:00Z");
  EXPECT_EQ(events[0].fields()["lastTimestamp"], "1970-01-02T00:00:05Z");
  EXPECT_EQ(events[1].fields()["count"], 1);
}

TEST_F(EventRecorderTest, CreatesAnEventAgainThatTheServerDeleted) {
  recorder_.Record(Pod("a"), EventType::kNormal, "Relaunched", "once more");
  recorder_.Flush();
  server_.Remove(kEvents, Events().at(0).key());

  recorder_.Record(Pod("a"), EventType::kNormal, "Relaunched", "once more");
  recorder_.Flush();

  ASSERT_THAT(Events(), SizeIs(1));
  EXPECT_EQ(Events()[0].fields()["count"], 1);
}

TEST_F(EventRecorderTest, DropsEventsAboveTheRateLimit) {
  for (int i = 0; i < 10; ++i) {
    recorder_.Record(Pod("a"), EventType::kNormal, "Again", fmt::format("number {}", i));
  }
  recorder_.Record(Pod("b"), EventType::kNormal, "Again", "number 0");
  recorder_.Flush();
  EXPECT_THAT(Events(), SizeIs(4));

  fake_.clock().Advance(std::chrono::seconds(300));
  recorder_.Record(Pod("a"), EventType::kNormal, "Again", "later");
  recorder_.Flush();
  EXPECT_THAT(Events(), SizeIs(5));
}

TEST_F(EventRecorderTest, DropsEventsThatCannotBeSent) {
  server_.Inject({.part = "POST", .status = 403});
  recorder_.Record(Pod("a"), EventType::kNormal, "Lost", "not recorded");
  recorder_.Record(Pod("a"), EventType::kNormal, "Recorded", "recorded");
  recorder_.Flush();
  ASSERT_THAT(Events(), SizeIs(1));
  EXPECT_EQ(Events()[0].fields()["reason"], "Recorded");
}

TEST_F(EventRecorderTest, ShortensALongMessageBetweenCharacters) {
  std::string text;
  while (text.size() < 2000) text += "ä";
  recorder_.Record(Pod("a"), EventType::kNormal, "Long", text);
  recorder_.Flush();
  const auto message = Events().at(0).fields()["message"].get<std::string>();
  EXPECT_EQ(message, text.substr(0, 1020) + "...");
}

TEST(EventRecorder, SendsWhileItRuns) {
  ApiServer server;
  const SystemClock clock;
  Connection connection(server.config(), clock, {});
  EventRecorder recorder(connection, RealTiming(clock), {.component = "c"});
  std::jthread runner([&](const std::stop_token& stop) { recorder.Run(stop); });

  recorder.Record(Object(kPods, {"ns", "a"}), EventType::kNormal, "Started", "immediately");

  EXPECT_OK(AwaitPolling("the event on the server", [&] {
    const auto events = Client(connection, RealTiming(clock)).List(kEvents, "ns");
    return events.ok() && events->items.size() == 1;
  }));
}

TEST_F(EventRecorderTest, ManyRoutineEventsDoNotDisplaceOthers) {
  EventRecorder recorder(connection_, fake_.timing(), {.burst = 3, .routine = {"Successful"}});
  for (int i = 0; i < 10; ++i) {
    recorder.Record(Pod("a"), EventType::kNormal, "SuccessfulCreate", fmt::format("number {}", i));
  }
  EXPECT_TRUE(recorder.Record(Pod("a"), EventType::kWarning, "Failed", "why"));
  recorder.Flush();

  const std::vector<Object> events = Events();
  ASSERT_THAT(events, SizeIs(4));
  EXPECT_EQ(std::ranges::count(events, "Failed",
                               [](const Object& event) { return event.fields()["reason"]; }),
            1);
}

TEST_F(EventRecorderTest, SaysWhetherAnEventIsDropped) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(recorder_.Record(Pod("a"), EventType::kNormal, "Again", fmt::format("{}", i)));
  }
  EXPECT_FALSE(recorder_.Record(Pod("a"), EventType::kNormal, "Again", "too many of the object"));
  EventRecorder small(connection_, fake_.timing(), {.max_queued = 1});
  EXPECT_TRUE(small.Record(Pod("a"), EventType::kNormal, "Again", "queued"));
  EXPECT_TRUE(small.Record(Pod("a"), EventType::kNormal, "Again", "queued")) << "it is counted";
  EXPECT_FALSE(small.Record(Pod("b"), EventType::kNormal, "Again", "too many in the queue"));
}

}  // namespace
}  // namespace edl::kube
