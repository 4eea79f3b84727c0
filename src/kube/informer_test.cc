#include "kube/informer.h"

#include <functional>
#include <future>
#include <map>
#include <stdexcept>
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

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Fault = ApiServer::Fault;

constexpr const char* kWatches = "watch=1";
constexpr const char* kLists = "limit=";

ObjectKey Key(const std::string& name) { return {.ns = "ns", .name = name}; }

Object Pod(const std::string& name, const std::string& color = "blue") {
  Object pod(kPods, Key(name));
  pod.set_label("color", color);
  return pod;
}

// Runs an informer on the thread of the test, so that the actions of the test happen in its
// callbacks: `then_["added a"]` runs when on_added was called for a.
class InformerTest : public testing::Test {
 protected:
  void Run(const Selector& selector = {}) {
    fake_.set_on_wait([this] {
      if (fake_.waits().size() > 50) Stop();  // instead of running forever
    });
    informer_ = std::make_unique<Informer>(
        connection_, Scope{kPods, "ns", selector}, fake_.timing(),
        InformerCallbacks{
            .on_added = [this](const Object& now) { OnEvent("added " + now.name()); },
            .on_updated =
                [this](const Object& before, const Object& now) {
                  EXPECT_EQ(before.uid(), now.uid());
                  OnEvent("updated " + now.name() + " " + now.label("color").value_or(""));
                },
            .on_deleted = [this](const Object& last) { OnEvent("deleted " + last.name()); },
            .on_synced = [this] { OnEvent("synced"); },
            .on_error =
                [this](const Status& status) {
                  OnEvent("error " + std::string(NameOf(status.code())));
                }},
        options_);
    informer_->Run(stop_.get_token());
  }
  void Stop() { stop_.request_stop(); }
  void OnEvent(const std::string& what) {
    events_.push_back(what);
    const auto found = then_.find(what);
    if (found == then_.end()) return;
    const auto act = std::move(found->second);
    then_.erase(found);
    act();
  }
  // Runs `act` in a running watch; before "synced" no watch runs.
  void OnceWatching(std::function<void()> act) {
    then_["synced"] = [this] { server_.Put(kPods, Pod("first")); };
    then_["added first"] = std::move(act);
  }
  // Stores the pod on another thread, after `number` watches were requested.
  std::future<void> PutDuringWatch(int number, const Object& pod) {
    return std::async(std::launch::async, [this, number, pod] {
      server_.AwaitRequests(kWatches, number);
      server_.Put(kPods, pod);
    });
  }

  ApiServer server_;
  FakeTiming fake_;
  Connection connection_{server_.config(), fake_.clock(), {}};
  std::stop_source stop_;
  Reflector::Options options_;
  std::map<std::string, std::function<void()>> then_;
  std::vector<std::string> events_;
  std::unique_ptr<Informer> informer_;
};

TEST_F(InformerTest, ReportsExistingObjectsAndThenChanges) {
  server_.Put(kPods, Pod("a"));
  server_.Put(kPods, Pod("b"));
  then_["synced"] = [this] { server_.Put(kPods, Pod("a", "red")); };
  then_["updated a red"] = [this] { server_.Put(kPods, Pod("c")); };
  then_["added c"] = [this] { server_.Remove(kPods, Key("b")); };
  then_["deleted b"] = [this] { Stop(); };

  Run();

  EXPECT_THAT(events_,
              ElementsAre("added a", "added b", "synced", "updated a red", "added c", "deleted b"));
  EXPECT_TRUE(informer_->synced());
  EXPECT_THAT(informer_->List(), SizeIs(2));
  EXPECT_EQ(informer_->Get(Key("a"))->label("color"), "red");
  EXPECT_EQ(informer_->Get(Key("b")), nullptr);
  EXPECT_THAT(fake_.waits(), IsEmpty());
}

TEST_F(InformerTest, KeepsNoManagedFields) {
  Object pod = Pod("a");
  pod.metadata()["managedFields"] = {{"manager", "kubectl"}};
  server_.Put(kPods, pod);
  then_["synced"] = [this] { Stop(); };

  Run();

  EXPECT_FALSE(informer_->Get(Key("a"))->fields()["metadata"].contains("managedFields"));
}

TEST_F(InformerTest, ContinuesAWatchFromItsLastVersion) {
  OnceWatching([this] { server_.EndWatches(); });
  const auto other = PutDuringWatch(2, Pod("second"));
  then_["added second"] = [this] { Stop(); };

  Run();

  EXPECT_THAT(events_, ElementsAre("synced", "added first", "added second"));
  EXPECT_EQ(server_.CountRequests(kLists), 1);
  EXPECT_THAT(fake_.waits(), IsEmpty());
}

TEST_F(InformerTest, ListsAgainAfterAnException) {
  OnceWatching([] { throw std::runtime_error("no memory"); });
  then_["error INTERNAL"] = [this] { server_.Put(kPods, Pod("next")); };
  then_["added next"] = [this] { Stop(); };

  Run();

  EXPECT_THAT(events_, ElementsAre("synced", "added first", "error INTERNAL", "added next"));
  EXPECT_EQ(server_.CountRequests(kLists), 2);
}

TEST_F(InformerTest, ContinuesAWatchFromABookmark) {
  OnceWatching([this] {
    server_.Put(kConfigMaps, Object(kConfigMaps, Key("unrelated")));
    server_.Compact();
    server_.BookmarkWatches();
    server_.EndWatches();
  });
  const auto other = PutDuringWatch(2, Pod("second"));
  then_["added second"] = [this] { Stop(); };

  Run();

  EXPECT_EQ(server_.CountRequests(kLists), 1);
  EXPECT_THAT(events_, ElementsAre("synced", "added first", "added second"));
}

TEST_F(InformerTest, ListsAgainWhenItsWatchIsTooOld) {
  server_.Put(kPods, Pod("gone"));
  server_.Put(kPods, Pod("same"));
  OnceWatching([this] {
    server_.RemoveUnseen(kPods, Key("gone"));
    server_.ExpireWatches();
  });
  then_["deleted gone"] = [this] { server_.Put(kPods, Pod("last")); };
  then_["added last"] = [this] { Stop(); };

  Run();

  EXPECT_THAT(events_, ElementsAre("added gone", "added same", "synced", "added first",
                                   "error OUT_OF_RANGE", "deleted gone", "added last"));
  EXPECT_EQ(server_.CountRequests(kLists), 2);
  EXPECT_THAT(fake_.waits(), ElementsAre(milliseconds(400)));
}

TEST_F(InformerTest, ListsAgainWhenTheVersionIsForgotten) {
  OnceWatching([this] {
    server_.EndWatches();
    server_.RemoveUnseen(kPods, Key("first"));
    server_.Compact();
  });
  then_["deleted first"] = [this] { Stop(); };

  Run();

  EXPECT_THAT(events_, ElementsAre("synced", "added first", "error OUT_OF_RANGE", "deleted first"));
}

// An API server that returns after a minute does not know the old versions. Changes in the meantime
// are reported without another delay of the length of the outage.
TEST_F(InformerTest, ListsAtOnceWhenAServerComesBackWithoutTheVersion) {
  OnceWatching([this] {
    server_.Inject({.kind = Fault::Kind::kBreak, .part = kWatches, .times = 4});
    server_.BreakWatches();
    server_.RemoveUnseen(kPods, Key("first"));
  });
  then_["deleted first"] = [this] { Stop(); };

  Run();

  EXPECT_EQ(events_.back(), "deleted first");
  EXPECT_THAT(fake_.waits(), ElementsAre(milliseconds(400), milliseconds(800), milliseconds(1600),
                                         milliseconds(3200), milliseconds(6400)));
}

TEST_F(InformerTest, ListsAgainWhenAServerIsBehind) {
  const std::string behind =
      R"({"kind":"Status","code":504,"reason":"Timeout","message":"Too large resource version"})";
  server_.Inject({.part = kWatches, .status = 504, .body = behind});
  server_.Inject(
      {.part = kWatches, .status = 200, .body = R"({"type":"ERROR","object":)" + behind + "}\n"});
  OnceWatching(
      [this] { then_["error DEADLINE_EXCEEDED"] = [this] { server_.Put(kPods, Pod("last")); }; });
  then_["added last"] = [this] { Stop(); };

  Run();

  EXPECT_THAT(events_, ElementsAre("synced", "error DEADLINE_EXCEEDED", "added first",
                                   "error DEADLINE_EXCEEDED", "added last"));
  EXPECT_EQ(server_.CountRequests(kLists), 3);
}

TEST_F(InformerTest, ReportsTheDeletionOfAnObjectThatWasReplaced) {
  server_.Put(kPods, Pod("a"));
  then_["synced"] = [this] {
    server_.RemoveUnseen(kPods, Key("a"));
    server_.Put(kPods, Pod("a"));
  };
  then_["deleted a"] = [this] { then_["added a"] = [this] { Stop(); }; };

  Run();

  EXPECT_THAT(events_,
              ElementsAre("added a", "synced", "error OUT_OF_RANGE", "deleted a", "added a"));
  EXPECT_THAT(informer_->List(), SizeIs(1));
}

TEST_F(InformerTest, WaitsLongerWithEachFailure) {
  server_.Inject({.part = kLists, .times = 3, .status = 500});
  server_.Inject({.kind = Fault::Kind::kBreak, .part = kLists});
  then_["synced"] = [this] { Stop(); };

  Run();

  EXPECT_THAT(events_, ElementsAre("error UNAVAILABLE", "error UNAVAILABLE", "error UNAVAILABLE",
                                   "error UNAVAILABLE", "synced"));
  EXPECT_THAT(fake_.waits(), ElementsAre(milliseconds(400), milliseconds(800), milliseconds(1600),
                                         milliseconds(3200)));
}

TEST_F(InformerTest, ContinuesAWatchAfterATemporaryError) {
  server_.Inject({.part = kWatches, .status = 429, .headers = "Retry-After: 1\r\n"});
  server_.Inject({.part = kWatches, .status = 503});
  server_.Inject({.kind = Fault::Kind::kBreak, .part = kWatches});
  OnceWatching([this] { server_.BreakWatches(); });
  const auto other = PutDuringWatch(5, Pod("second"));
  then_["added second"] = [this] { Stop(); };

  Run();

  EXPECT_THAT(events_,
              ElementsAre("synced", "error RESOURCE_EXHAUSTED", "error UNAVAILABLE",
                          "error UNAVAILABLE", "added first", "error UNAVAILABLE", "added second"));
  EXPECT_EQ(server_.CountRequests(kLists), 1);
  EXPECT_THAT(fake_.waits(), SizeIs(4));
}

TEST_F(InformerTest, ContinuesAWatchAtOnceAfterABrokenConnection) {
  OnceWatching([this] {
    fake_.clock().Advance(options_.short_watch);
    server_.BreakWatches();
  });
  const auto other = PutDuringWatch(2, Pod("second"));
  then_["added second"] = [this] { Stop(); };

  Run();

  EXPECT_THAT(events_, ElementsAre("synced", "added first", "error UNAVAILABLE", "added second"));
  EXPECT_THAT(fake_.waits(), IsEmpty());
}

TEST_F(InformerTest, DoesNotFollowAServerThatEndsAllWatchesAtOnce) {
  server_.Inject({.part = kWatches, .times = 3, .status = 200});
  OnceWatching([this] { Stop(); });

  Run();

  EXPECT_THAT(fake_.waits(), SizeIs(3));
  EXPECT_EQ(server_.CountRequests(kLists), 1);
}

TEST_F(InformerTest, EndsASilentWatch) {
  options_.silence = milliseconds(50);
  server_.Inject({.kind = Fault::Kind::kSilent, .part = kWatches});
  OnceWatching([this] { Stop(); });

  Run();

  EXPECT_THAT(events_, ElementsAre("synced", "error UNAVAILABLE", "added first"));
  EXPECT_EQ(server_.CountRequests(kLists), 1);
}

TEST_F(InformerTest, ReadsEventsHoweverTheyAreSplit) {
  server_.SplitFrames();
  OnceWatching([this] { server_.Put(kPods, Pod("second")); });
  then_["added second"] = [this] { Stop(); };

  Run();

  EXPECT_THAT(events_, ElementsAre("synced", "added first", "added second"));
}

TEST_F(InformerTest, ListsAgainAfterWhatIsNoEvent) {
  server_.Inject({.part = kWatches, .status = 200, .body = "<html>\n"});
  OnceWatching([this] { Stop(); });

  Run();

  EXPECT_EQ(server_.CountRequests(kLists), 2);
  EXPECT_THAT(events_, ElementsAre("synced", "error DATA_LOSS", "added first"));
}

TEST_F(InformerTest, FollowsWhatEntersAndLeavesItsSelection) {
  server_.Put(kPods, Pod("a", "red"));
  server_.Put(kPods, Pod("b", "blue"));
  then_["synced"] = [this] { server_.Put(kPods, Pod("a", "blue")); };
  then_["added a"] = [this] { server_.Put(kPods, Pod("b", "red")); };
  then_["deleted b"] = [this] { Stop(); };

  Run({.labels = "color in (blue, green)"});

  EXPECT_THAT(events_, ElementsAre("added b", "synced", "added a", "deleted b"));
}

TEST_F(InformerTest, ReportsAMissingPermission) {
  server_.Inject({.part = kLists, .status = 403});
  then_["synced"] = [this] { Stop(); };

  Run();

  EXPECT_THAT(events_, ElementsAre("error PERMISSION_DENIED", "synced"));
}

TEST(Informer, StopsDuringAWatch) {
  ApiServer server;
  const SystemClock clock;
  Connection connection(server.config(), clock, {});
  std::promise<void> watching;
  Informer informer(connection, {kPods, "ns", {}}, RealTiming(clock),
                    {.on_added = [&](const Object&) { watching.set_value(); },
                     .on_synced = [&] { server.Put(kPods, Pod("a")); }});
  std::jthread runner([&](const std::stop_token& stop) { informer.Run(stop); });
  ASSERT_OK(AwaitReady(watching.get_future(), "the first event of the watch"));

  runner.request_stop();
  runner.join();

  EXPECT_THAT(informer.List(), SizeIs(1));
}

}  // namespace
}  // namespace edl::kube
