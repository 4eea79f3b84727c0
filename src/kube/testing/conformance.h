#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "kube/client.h"
#include "kube/connection.h"
#include "kube/informer.h"
#include "kube/lease.h"

// The behaviour of an API server on which Client, Informer and LeaseHolder rely, as one suite: it
// keeps the fake server of the tests faithful. A test includes this file once and contains
//
//   INSTANTIATE_TEST_SUITE_P(Mine, KubeConformance, testing::Values(MakeServer(...)));
namespace edl::kube {

// A service account to which no role is bound. It need not exist: access reviews take any name.
inline constexpr std::string_view kAccountWithoutRoles = "elasticdl-no-roles";

// A server under test, and a namespace in which the suite may do anything.
class ConformanceServer {
 public:
  virtual ~ConformanceServer() = default;
  virtual Config config() = 0;
  virtual std::string ns() = 0;
};

using MakeServer = std::function<std::unique_ptr<ConformanceServer>()>;

// The events of an informer.
class InformerEvents {
 public:
  void Add(const std::string& event) {
    const MutexLock lock(mutex_);
    events_.push_back(event);
    changed_.NotifyAll();
  }
  // Blocks until the last event is `event`, and returns all of them. Fails the test after a minute.
  std::vector<std::string> Until(const std::string& event) {
    const MutexLock lock(mutex_);
    EXPECT_OK(Await(mutex_, changed_, fmt::format("the informer event \"{}\"", event),
                    [&]()
                        REQUIRES(mutex_) { return !events_.empty() && events_.back() == event; }));
    return events_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> events_ GUARDED_BY(mutex_);
};

class KubeConformance : public testing::TestWithParam<MakeServer> {
 protected:
  KubeConformance()
      : server_(GetParam()()), prefix_(fmt::format("t{:08x}-", std::random_device{}())) {}
  ~KubeConformance() override {
    for (const Resource& resource : {kConfigMaps, kPods, kLeases}) {
      const auto left = client_.List(resource, server_->ns(), {.labels = "suite=" + suite()});
      for (const Object& object : left.ok() ? left->items : std::vector<Object>()) {
        EXPECT_OK(client_.Delete(resource, object.key(), {.grace = std::chrono::seconds(0)}));
      }
    }
  }

  std::string suite() const { return prefix_.substr(0, prefix_.size() - 1); }
  ObjectKey Key(const std::string& name) const { return {server_->ns(), prefix_ + name}; }
  Selector Mine() const { return {.labels = "suite=" + suite()}; }

  Object ConfigMap(const std::string& name, const std::string& value = "one") const {
    Object out(kConfigMaps, Key(name));
    out.set_label("suite", suite());
    out.fields()["data"] = {{"value", value}};
    return out;
  }
  // A pod that no scheduler places on a node, so that only the test changes it.
  Object Pod(const std::string& name) const {
    Object out(kPods, Key(name));
    out.set_label("suite", suite());
    out.fields()["spec"] = {
        {"schedulerName", "nobody"},
        {"automountServiceAccountToken", false},
        {"containers", {{{"name", "main"}, {"image", "registry.invalid/none:1"}}}}};
    return out;
  }
  Object Created(const Resource& resource, const Object& object) {
    auto created = client_.Create(resource, object);
    EXPECT_OK(created);
    return created.ok() ? *created : Object();
  }
  static std::string Value(const Result<Object>& object) {
    EXPECT_OK(object);
    return object.ok() ? TextIn(FieldAt(object->fields(), {"data"}), "value") : "";
  }
  LeaseHolder Holder(const std::string& identity) {
    return LeaseHolder(connection_, RealTiming(clock_),
                       {.key = Key("lease"),
                        .identity = identity,
                        .duration = std::chrono::seconds(3),
                        .renew_deadline = std::chrono::seconds(2),
                        .retry = std::chrono::seconds(1)});
  }

  std::unique_ptr<ConformanceServer> server_;
  const SystemClock clock_;
  const std::string prefix_;
  Connection connection_{server_->config(), clock_, {}};
  Client client_{connection_, RealTiming(clock_)};
};

TEST_P(KubeConformance, KeepsWhatIsCreatedUntilItIsDeleted) {
  const Object created = Created(kConfigMaps, ConfigMap("a"));
  EXPECT_FALSE(created.uid().empty());
  EXPECT_FALSE(created.resource_version().empty());
  EXPECT_EQ(Value(client_.Get(kConfigMaps, Key("a"))), "one");

  EXPECT_OK(client_.Delete(kConfigMaps, Key("a")));

  EXPECT_THAT(client_.Get(kConfigMaps, Key("a")), StatusIs(Code::kNotFound));
  EXPECT_OK(client_.Delete(kConfigMaps, Key("a"))) << "an object that does not exist";
}

TEST_P(KubeConformance, HasOneObjectOfAName) {
  Created(kConfigMaps, ConfigMap("a"));
  const Status second = client_.Create(kConfigMaps, ConfigMap("a", "two")).status();
  EXPECT_THAT(second, StatusIs(Code::kAlreadyExists));
  EXPECT_THAT(second.message(), testing::HasSubstr(Key("a").name));
  EXPECT_EQ(Value(client_.Get(kConfigMaps, Key("a"))), "one");
}

TEST_P(KubeConformance, ValidatesAnObjectInADryRun) {
  EXPECT_OK(client_.CreateDryRun(kConfigMaps, ConfigMap("a")));
  EXPECT_THAT(client_.Get(kConfigMaps, Key("a")), StatusIs(Code::kNotFound));
  Created(kConfigMaps, ConfigMap("a"));
  EXPECT_THAT(client_.CreateDryRun(kConfigMaps, ConfigMap("a")), StatusIs(Code::kAlreadyExists));
}

TEST_P(KubeConformance, GeneratesNames) {
  Object nameless = ConfigMap("");
  nameless.metadata().erase("name");
  nameless.metadata()["generateName"] = prefix_ + "made-";
  const Object one = Created(kConfigMaps, nameless);
  const Object two = Created(kConfigMaps, nameless);
  EXPECT_THAT(one.name(), testing::StartsWith(prefix_ + "made-"));
  EXPECT_NE(one.name(), two.name());
}

TEST_P(KubeConformance, UpdatesOnlyTheVersionThatWasRead) {
  Object first = Created(kConfigMaps, ConfigMap("a"));
  Object second = first;
  first.fields()["data"]["value"] = "two";
  EXPECT_EQ(Value(client_.Update(kConfigMaps, first)), "two");

  second.fields()["data"]["value"] = "three";
  EXPECT_THAT(client_.Update(kConfigMaps, second), StatusIs(Code::kAborted));
  EXPECT_EQ(Value(client_.Get(kConfigMaps, Key("a"))), "two");
}

TEST_P(KubeConformance, ChangesTheVersionOnlyWithTheObject) {
  const Object first = Created(kConfigMaps, ConfigMap("a"));
  const auto same = client_.Update(kConfigMaps, first);
  ASSERT_OK(same);
  EXPECT_EQ(same->resource_version(), first.resource_version());
  const auto other = client_.Patch(kConfigMaps, Key("a"), {{"data", {{"value", "two"}}}});
  ASSERT_OK(other);
  EXPECT_NE(other->resource_version(), first.resource_version());
}

TEST_P(KubeConformance, MergesPatches) {
  Created(kConfigMaps, ConfigMap("a"));
  const auto merged =
      client_.Patch(kConfigMaps, Key("a"), {{"data", {{"value", nullptr}, {"other", "two"}}}});
  ASSERT_OK(merged);
  EXPECT_EQ(merged->fields()["data"], (nlohmann::json{{"other", "two"}}));

  const nlohmann::json steps = {{{"op", "test"}, {"path", "/data/other"}, {"value", "two"}},
                                {{"op", "add"}, {"path", "/data/value"}, {"value", "three"}}};
  EXPECT_EQ(Value(client_.Patch(kConfigMaps, Key("a"), steps, {.type = PatchType::kJson})),
            "three");
  EXPECT_THAT(client_.Patch(kConfigMaps, Key("none"), nlohmann::json::object()),
              StatusIs(Code::kNotFound));
}

TEST_P(KubeConformance, AppliesAConfiguration) {
  const PatchOptions apply{.type = PatchType::kApply, .field_manager = "suite", .force = true};
  EXPECT_EQ(Value(client_.Patch(kConfigMaps, Key("a"), ConfigMap("a").fields(), apply)), "one");
  EXPECT_EQ(Value(client_.Patch(kConfigMaps, Key("a"), ConfigMap("a", "two").fields(), apply)),
            "two");
}

TEST_P(KubeConformance, UpdatesStatusSeparately) {
  Object pod = Created(kPods, Pod("p"));
  EXPECT_EQ(TextIn(FieldAt(pod.fields(), {"status"}), "phase"), "Pending");

  pod.fields()["status"]["phase"] = "Running";
  pod.fields()["spec"]["activeDeadlineSeconds"] = 1000;
  const auto running = client_.UpdateStatus(kPods, pod);
  ASSERT_OK(running);
  EXPECT_EQ(TextIn(FieldAt(running->fields(), {"status"}), "phase"), "Running");
  EXPECT_FALSE(running->fields()["spec"].contains("activeDeadlineSeconds"));

  Object again = *running;
  again.fields()["status"]["phase"] = "Failed";
  again.set_label("color", "red");
  const auto labelled = client_.Update(kPods, again);
  ASSERT_OK(labelled);
  EXPECT_EQ(TextIn(FieldAt(labelled->fields(), {"status"}), "phase"), "Running");
  EXPECT_EQ(labelled->label("color"), "red");
}

TEST_P(KubeConformance, DeletesOnlyTheObjectWithTheGivenUid) {
  const Object created = Created(kConfigMaps, ConfigMap("a"));
  EXPECT_THAT(client_.Delete(kConfigMaps, Key("a"), {.uid = "another"}), StatusIs(Code::kAborted));
  EXPECT_OK(client_.Get(kConfigMaps, Key("a")));
  EXPECT_OK(client_.Delete(kConfigMaps, Key("a"),
                           {.propagation = Propagation::kBackground,
                            .uid = created.uid(),
                            .resource_version = created.resource_version()}));
  EXPECT_THAT(client_.Get(kConfigMaps, Key("a")), StatusIs(Code::kNotFound));
}

TEST_P(KubeConformance, KeepsWhatAFinalizerHolds) {
  Object held = ConfigMap("a");
  held.metadata()["finalizers"] = {"elasticdl.org/suite"};
  Created(kConfigMaps, held);
  ASSERT_OK(client_.Delete(kConfigMaps, Key("a")));
  const auto lingering = client_.Get(kConfigMaps, Key("a"));
  ASSERT_OK(lingering);
  EXPECT_TRUE(lingering->deleting());
  EXPECT_TRUE(lingering->deletion_time().has_value());

  const nlohmann::json freed = {{"metadata", {{"finalizers", nullptr}}}};
  EXPECT_OK(client_.Patch(kConfigMaps, Key("a"), freed));

  EXPECT_THAT(client_.Get(kConfigMaps, Key("a")), StatusIs(Code::kNotFound));
}

TEST_P(KubeConformance, ListsInPagesWhatIsSelected) {
  Client small(connection_, RealTiming(clock_), {.page_size = 2});
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    Object one = ConfigMap(name);
    if (std::string(name) != "e") one.set_label("name", name);
    Created(kConfigMaps, one);
  }
  const auto names = [&](const std::string& labels, const std::string& fields = "") {
    const auto list = small.List(kConfigMaps, server_->ns(), {Mine().labels + labels, fields});
    EXPECT_OK(list);
    std::string out;
    for (const Object& one : list->items) {
      EXPECT_EQ(one.kind(), "ConfigMap");
      out += one.name().substr(prefix_.size());
    }
    EXPECT_FALSE(list->resource_version.empty());
    return out;
  };
  EXPECT_EQ(names(""), "abcde");
  EXPECT_EQ(names(",name"), "abcd");
  EXPECT_EQ(names(",!name"), "e");
  EXPECT_EQ(names(",name=b"), "b");
  EXPECT_EQ(names(",name!=b"), "acde");
  EXPECT_EQ(names(",name in (b, d)"), "bd");
  EXPECT_EQ(names(",name notin (b, d)"), "ace");
  EXPECT_EQ(names("", "metadata.name=" + Key("c").name), "c");
}

TEST_P(KubeConformance, ReportsChangesSinceAListToAWatch) {
  Created(kConfigMaps, ConfigMap("a"));
  const auto list = client_.List(kConfigMaps, server_->ns(), Mine());
  ASSERT_OK(list);
  Created(kConfigMaps, ConfigMap("b"));
  ASSERT_OK(client_.Patch(kConfigMaps, Key("a"), {{"data", {{"value", "two"}}}}));
  ASSERT_OK(client_.Delete(kConfigMaps, Key("a")));

  auto watch = client_.Watch(kConfigMaps, server_->ns(),
                             {.selector = Mine(),
                              .resource_version = list->resource_version,
                              .timeout = std::chrono::seconds(20)});
  ASSERT_OK(watch);
  using Kind = WatchEvent::Kind;
  for (const auto& [kind, name] : {std::pair(Kind::kAdded, "b"), std::pair(Kind::kModified, "a"),
                                   std::pair(Kind::kDeleted, "a")}) {
    const auto event = (*watch)->Next();
    ASSERT_TRUE(event.ok() && *event) << event.status();
    EXPECT_EQ((*event)->kind, kind);
    EXPECT_EQ(Object((*event)->object).name(), prefix_ + name);
  }
}

TEST_P(KubeConformance, EndsAWatchAfterItsTime) {
  const auto list = client_.List(kConfigMaps, server_->ns(), Mine());
  ASSERT_OK(list);
  auto watch = client_.Watch(kConfigMaps, server_->ns(),
                             {.selector = Mine(),
                              .resource_version = list->resource_version,
                              .timeout = std::chrono::seconds(1)});
  ASSERT_OK(watch);
  auto event = (*watch)->Next();
  while (event.ok() && *event && (*event)->kind == WatchEvent::Kind::kBookmark) {
    event = (*watch)->Next();
  }
  ASSERT_OK(event);
  EXPECT_FALSE(event->has_value());
}

TEST_P(KubeConformance, LetsAnInformerFollow) {
  InformerEvents events;
  const auto record = [&](const char* what) {
    return [this, &events, what](const Object& object) {
      events.Add(what + (" " + object.name().substr(prefix_.size())));
    };
  };
  Created(kConfigMaps, ConfigMap("a"));
  Informer informer(
      connection_, {kConfigMaps, server_->ns(), Mine()}, RealTiming(clock_),
      {.on_added = record("added"),
       .on_updated = [&](const Object&, const Object& now) { record("updated")(now); },
       .on_deleted = record("deleted"),
       .on_synced = [&] { events.Add("synced"); },
       .on_error = [&](const Status& status) { events.Add(status.ToString()); }});
  std::jthread runner([&](const std::stop_token& stop) { informer.Run(stop); });
  EXPECT_THAT(events.Until("synced"), testing::ElementsAre("added a", "synced"));

  Created(kConfigMaps, ConfigMap("b"));
  events.Until("added b");
  EXPECT_OK(client_.Patch(kConfigMaps, Key("a"), {{"data", {{"value", "two"}}}}));
  events.Until("updated a");
  EXPECT_OK(client_.Patch(kConfigMaps, Key("b"), {{"metadata", {{"labels", {{"suite", "x"}}}}}}));
  events.Until("deleted b");
  EXPECT_OK(client_.Delete(kConfigMaps, Key("b")));
  EXPECT_OK(client_.Delete(kConfigMaps, Key("a")));

  EXPECT_THAT(
      events.Until("deleted a"),
      testing::ElementsAre("added a", "synced", "added b", "updated a", "deleted b", "deleted a"));
}

TEST_P(KubeConformance, GrantsALeaseToOneHolder) {
  LeaseHolder one = Holder("one");
  ASSERT_OK(one.Acquire({}));
  EXPECT_TRUE(one.held());
  LeaseHolder two = Holder("two");
  std::promise<std::string> waits;
  auto acquired = std::async(std::launch::async, [&] {
    return two.Acquire({}, [&](const std::string& holder) { waits.set_value(holder); });
  });
  auto waits_for = waits.get_future();
  ASSERT_OK(AwaitReady(waits_for, "the second holder waiting for the first"));
  EXPECT_EQ(waits_for.get(), "one");
  EXPECT_FALSE(two.held());

  EXPECT_OK(one.Release());

  EXPECT_OK(acquired.get());
  EXPECT_TRUE(two.held());
  EXPECT_THAT(one.Keep({}), StatusIs(Code::kAborted));
  EXPECT_OK(client_.Delete(kLeases, Key("lease")));
}

TEST_P(KubeConformance, TakesOverTheLeaseOfADeadHolder) {
  LeaseHolder dead = Holder("dead");
  ASSERT_OK(dead.Acquire({}));
  LeaseHolder next = Holder("next");

  ASSERT_OK(next.Acquire({}));

  EXPECT_TRUE(next.held());
  EXPECT_FALSE(dead.held());
  EXPECT_OK(client_.Delete(kLeases, Key("lease")));
}

TEST_P(KubeConformance, ReviewsTheAccessOfTheCaller) {
  const auto may = client_.CanI({.verb = "create", .resource = kConfigMaps, .ns = server_->ns()});
  ASSERT_OK(may);
  EXPECT_TRUE(may->allowed);
}

TEST_P(KubeConformance, ReviewsTheAccessOfAnAccount) {
  const std::string& ns = server_->ns();
  const auto may =
      client_.CanAccount({ns, std::string(kAccountWithoutRoles)},
                         {.verb = "get", .resource = kSecrets, .ns = ns, .name = "none"});
  ASSERT_OK(may);
  EXPECT_FALSE(may->allowed);
}

TEST_P(KubeConformance, ReportsItsVersion) {
  const auto version = client_.ServerVersion();
  ASSERT_OK(version);
  EXPECT_TRUE(version->starts_with("v1.")) << *version;
}

TEST_P(KubeConformance, RefusesWhatIsNoObject) {
  Object wrong = ConfigMap("a");
  wrong.metadata()["name"] = "";
  EXPECT_THAT(client_.Create(kConfigMaps, wrong), StatusIs(Code::kInvalidArgument));
}

}  // namespace edl::kube
