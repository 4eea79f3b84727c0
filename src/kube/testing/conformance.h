#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mutex.h"
#include "kube/client.h"
#include "kube/connection.h"
#include "kube/informer.h"
#include "kube/lease.h"

// What our client, informer and lease need of an API server, as one suite, so that the server of
// the tests is one. A test includes this file once and says
//
//   INSTANTIATE_TEST_SUITE_P(Mine, KubeConformance, testing::Values(MakeServer(...)));
namespace edl::kube {

// A server under test, and a namespace of it in which anything may be done.
class ConformanceServer {
 public:
  virtual ~ConformanceServer() = default;
  virtual Config config() = 0;
  virtual std::string ns() = 0;
};

using MakeServer = std::function<std::unique_ptr<ConformanceServer>()>;

// What an informer tells, to be waited for.
class ToldEvents {
 public:
  void Add(const std::string& event) {
    const MutexLock lock(mutex_);
    events_.push_back(event);
    changed_.NotifyAll();
  }
  // Once the last one is `event`, or after 30 s.
  std::vector<std::string> Until(const std::string& event) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const MutexLock lock(mutex_);
    while (events_.empty() || events_.back() != event) {
      if (!changed_.WaitUntil(mutex_, deadline)) break;
    }
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
        EXPECT_TRUE(
            client_.Delete(resource, object.key(), {.grace = std::chrono::seconds(0)}).ok());
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
  // One that no scheduler takes, so that only the test changes it.
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
    EXPECT_TRUE(created.ok()) << created.status();
    return created.ok() ? *created : Object();
  }
  static std::string Value(const Result<Object>& object) {
    EXPECT_TRUE(object.ok()) << object.status();
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

  EXPECT_TRUE(client_.Delete(kConfigMaps, Key("a")).ok());

  EXPECT_EQ(client_.Get(kConfigMaps, Key("a")).status().code(), Code::kNotFound);
  EXPECT_TRUE(client_.Delete(kConfigMaps, Key("a")).ok()) << "what is not there";
}

TEST_P(KubeConformance, HasOneObjectOfAName) {
  Created(kConfigMaps, ConfigMap("a"));
  const Status second = client_.Create(kConfigMaps, ConfigMap("a", "two")).status();
  EXPECT_EQ(second.code(), Code::kAlreadyExists);
  EXPECT_THAT(second.message(), testing::HasSubstr(Key("a").name));
  EXPECT_EQ(Value(client_.Get(kConfigMaps, Key("a"))), "one");
}

TEST_P(KubeConformance, SaysWhetherItWouldTakeAnObject) {
  EXPECT_TRUE(client_.CreateDryRun(kConfigMaps, ConfigMap("a")).ok());
  EXPECT_EQ(client_.Get(kConfigMaps, Key("a")).status().code(), Code::kNotFound);
  Created(kConfigMaps, ConfigMap("a"));
  EXPECT_EQ(client_.CreateDryRun(kConfigMaps, ConfigMap("a")).status().code(),
            Code::kAlreadyExists);
}

TEST_P(KubeConformance, MakesNames) {
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
  EXPECT_EQ(client_.Update(kConfigMaps, second).status().code(), Code::kAborted);
  EXPECT_EQ(Value(client_.Get(kConfigMaps, Key("a"))), "two");
}

TEST_P(KubeConformance, GivesEachChangeAVersionAndNoChangeNone) {
  const Object first = Created(kConfigMaps, ConfigMap("a"));
  const auto same = client_.Update(kConfigMaps, first);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->resource_version(), first.resource_version());
  const auto other = client_.Patch(kConfigMaps, Key("a"), {{"data", {{"value", "two"}}}});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(other->resource_version(), first.resource_version());
}

TEST_P(KubeConformance, MergesPatches) {
  Created(kConfigMaps, ConfigMap("a"));
  const auto merged =
      client_.Patch(kConfigMaps, Key("a"), {{"data", {{"value", nullptr}, {"other", "two"}}}});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->fields()["data"], (nlohmann::json{{"other", "two"}}));

  const nlohmann::json steps = {{{"op", "test"}, {"path", "/data/other"}, {"value", "two"}},
                                {{"op", "add"}, {"path", "/data/value"}, {"value", "three"}}};
  EXPECT_EQ(Value(client_.Patch(kConfigMaps, Key("a"), steps, {.type = PatchType::kJson})),
            "three");
  EXPECT_EQ(client_.Patch(kConfigMaps, Key("none"), nlohmann::json::object()).status().code(),
            Code::kNotFound);
}

TEST_P(KubeConformance, AppliesWhatIsWanted) {
  const PatchOptions apply{.type = PatchType::kApply, .field_manager = "suite", .force = true};
  EXPECT_EQ(Value(client_.Patch(kConfigMaps, Key("a"), ConfigMap("a").fields(), apply)), "one");
  EXPECT_EQ(Value(client_.Patch(kConfigMaps, Key("a"), ConfigMap("a", "two").fields(), apply)),
            "two");
}

TEST_P(KubeConformance, KeepsStatusApart) {
  Object pod = Created(kPods, Pod("p"));
  EXPECT_EQ(TextIn(FieldAt(pod.fields(), {"status"}), "phase"), "Pending");

  pod.fields()["status"]["phase"] = "Running";
  pod.fields()["spec"]["activeDeadlineSeconds"] = 1000;
  const auto running = client_.UpdateStatus(kPods, pod);
  ASSERT_TRUE(running.ok()) << running.status();
  EXPECT_EQ(TextIn(FieldAt(running->fields(), {"status"}), "phase"), "Running");
  EXPECT_FALSE(running->fields()["spec"].contains("activeDeadlineSeconds"));

  Object again = *running;
  again.fields()["status"]["phase"] = "Failed";
  again.set_label("color", "red");
  const auto labelled = client_.Update(kPods, again);
  ASSERT_TRUE(labelled.ok()) << labelled.status();
  EXPECT_EQ(TextIn(FieldAt(labelled->fields(), {"status"}), "phase"), "Running");
  EXPECT_EQ(labelled->label("color"), "red");
}

TEST_P(KubeConformance, DeletesOnlyTheOneThatIsMeant) {
  const Object created = Created(kConfigMaps, ConfigMap("a"));
  EXPECT_EQ(client_.Delete(kConfigMaps, Key("a"), {.uid = "another"}).code(), Code::kAborted);
  EXPECT_TRUE(client_.Get(kConfigMaps, Key("a")).ok());
  EXPECT_TRUE(client_
                  .Delete(kConfigMaps, Key("a"),
                          {.propagation = Propagation::kBackground,
                           .uid = created.uid(),
                           .resource_version = created.resource_version()})
                  .ok());
  EXPECT_EQ(client_.Get(kConfigMaps, Key("a")).status().code(), Code::kNotFound);
}

TEST_P(KubeConformance, KeepsWhatAFinalizerHolds) {
  Object held = ConfigMap("a");
  held.metadata()["finalizers"] = {"elasticdl.org/suite"};
  Created(kConfigMaps, held);
  ASSERT_TRUE(client_.Delete(kConfigMaps, Key("a")).ok());
  const auto lingering = client_.Get(kConfigMaps, Key("a"));
  ASSERT_TRUE(lingering.ok()) << lingering.status();
  EXPECT_TRUE(lingering->deleting());
  EXPECT_TRUE(lingering->deletion_time().has_value());

  const nlohmann::json freed = {{"metadata", {{"finalizers", nullptr}}}};
  EXPECT_TRUE(client_.Patch(kConfigMaps, Key("a"), freed).ok());

  EXPECT_EQ(client_.Get(kConfigMaps, Key("a")).status().code(), Code::kNotFound);
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
    EXPECT_TRUE(list.ok()) << list.status();
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

TEST_P(KubeConformance, TellsAWatchWhatChangedSinceAList) {
  Created(kConfigMaps, ConfigMap("a"));
  const auto list = client_.List(kConfigMaps, server_->ns(), Mine());
  ASSERT_TRUE(list.ok()) << list.status();
  Created(kConfigMaps, ConfigMap("b"));
  ASSERT_TRUE(client_.Patch(kConfigMaps, Key("a"), {{"data", {{"value", "two"}}}}).ok());
  ASSERT_TRUE(client_.Delete(kConfigMaps, Key("a")).ok());

  auto watch = client_.Watch(kConfigMaps, server_->ns(),
                             {.selector = Mine(),
                              .resource_version = list->resource_version,
                              .timeout = std::chrono::seconds(20)});
  ASSERT_TRUE(watch.ok()) << watch.status();
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
  ASSERT_TRUE(list.ok()) << list.status();
  auto watch = client_.Watch(kConfigMaps, server_->ns(),
                             {.selector = Mine(),
                              .resource_version = list->resource_version,
                              .timeout = std::chrono::seconds(1)});
  ASSERT_TRUE(watch.ok()) << watch.status();
  auto event = (*watch)->Next();
  while (event.ok() && *event && (*event)->kind == WatchEvent::Kind::kBookmark) {
    event = (*watch)->Next();
  }
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_FALSE(event->has_value());
}

TEST_P(KubeConformance, LetsAnInformerFollow) {
  ToldEvents told;
  const auto tell = [&](const char* what) {
    return [this, &told, what](const Object& object) {
      told.Add(what + (" " + object.name().substr(prefix_.size())));
    };
  };
  Created(kConfigMaps, ConfigMap("a"));
  Informer informer(connection_, {kConfigMaps, server_->ns(), Mine()}, RealTiming(clock_),
                    {.on_added = tell("added"),
                     .on_updated = [&](const Object&, const Object& now) { tell("updated")(now); },
                     .on_deleted = tell("deleted"),
                     .on_synced = [&] { told.Add("synced"); },
                     .on_trouble = [&](const Status& status) { told.Add(status.ToString()); }});
  std::jthread runner([&](const std::stop_token& stop) { informer.Run(stop); });
  EXPECT_THAT(told.Until("synced"), testing::ElementsAre("added a", "synced"));

  Created(kConfigMaps, ConfigMap("b"));
  told.Until("added b");
  EXPECT_TRUE(client_.Patch(kConfigMaps, Key("a"), {{"data", {{"value", "two"}}}}).ok());
  told.Until("updated a");
  EXPECT_TRUE(
      client_.Patch(kConfigMaps, Key("b"), {{"metadata", {{"labels", {{"suite", "x"}}}}}}).ok());
  told.Until("deleted b");
  EXPECT_TRUE(client_.Delete(kConfigMaps, Key("b")).ok());
  EXPECT_TRUE(client_.Delete(kConfigMaps, Key("a")).ok());

  EXPECT_THAT(told.Until("deleted a"), testing::ElementsAre("added a", "synced", "added b",
                                                            "updated a", "deleted b", "deleted a"));
}

TEST_P(KubeConformance, LetsOneHoldALease) {
  LeaseHolder one = Holder("one");
  ASSERT_TRUE(one.Acquire({}).ok());
  EXPECT_TRUE(one.held());
  LeaseHolder two = Holder("two");
  std::promise<std::string> waits;
  auto acquired = std::async(std::launch::async, [&] {
    return two.Acquire({}, [&](const std::string& holder) { waits.set_value(holder); });
  });
  EXPECT_EQ(waits.get_future().get(), "one");
  EXPECT_FALSE(two.held());

  EXPECT_TRUE(one.Release().ok());

  EXPECT_TRUE(acquired.get().ok());
  EXPECT_TRUE(two.held());
  EXPECT_EQ(one.Keep({}).code(), Code::kAborted);
  EXPECT_TRUE(client_.Delete(kLeases, Key("lease")).ok());
}

TEST_P(KubeConformance, TakesADeadHoldersLease) {
  LeaseHolder dead = Holder("dead");
  ASSERT_TRUE(dead.Acquire({}).ok());
  LeaseHolder next = Holder("next");

  ASSERT_TRUE(next.Acquire({}).ok());

  EXPECT_TRUE(next.held());
  EXPECT_FALSE(dead.held());
  EXPECT_TRUE(client_.Delete(kLeases, Key("lease")).ok());
}

TEST_P(KubeConformance, SaysWhetherWeMay) {
  const auto may = client_.CanI({.verb = "create", .resource = kConfigMaps, .ns = server_->ns()});
  ASSERT_TRUE(may.ok()) << may.status();
  EXPECT_TRUE(may->allowed);
}

TEST_P(KubeConformance, SaysWhetherAnAccountMay) {
  const std::string& ns = server_->ns();
  const auto may = client_.CanAccount(
      {ns, "default"}, {.verb = "get", .resource = kSecrets, .ns = ns, .name = "none"});
  ASSERT_TRUE(may.ok()) << may.status();
}

TEST_P(KubeConformance, SaysItsVersion) {
  const auto version = client_.ServerVersion();
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_TRUE(version->starts_with("v1.")) << *version;
}

TEST_P(KubeConformance, RefusesWhatIsNoObject) {
  Object wrong = ConfigMap("a");
  wrong.metadata()["name"] = "";
  EXPECT_EQ(client_.Create(kConfigMaps, wrong).status().code(), Code::kInvalidArgument);
}

}  // namespace edl::kube
