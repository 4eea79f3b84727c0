#include "kube/client.h"

#include <deque>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "kube/testing/fake_timing.h"
#include "kube/testing/http_server.h"

namespace edl::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Act = std::function<void(ServedConnection&)>;

Act Answer(int status, const std::string& body, const std::string& headers = "") {
  return [=](ServedConnection& connection) { connection.Answer(status, body, headers); };
}
Act Break() {
  return [](ServedConnection& connection) { connection.Break(); };
}
std::string Refusal(int code, const std::string& reason, const std::string& message) {
  return json{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}.dump();
}

constexpr const char* kPod = R"({"kind":"Pod","metadata":{"name":"p","namespace":"ns"}})";
const ObjectKey kKey{.ns = "ns", .name = "p"};

// A server that answers each request with the next prepared action, and records the requests.
class ClientTest : public testing::Test {
 protected:
  Client Make(ClientOptions options = {}) { return Client(connection_, fake_.timing(), options); }
  // Prepares the answers to the next requests.
  void Will(std::deque<Act> acts) {
    const MutexLock lock(mutex_);
    acts_ = std::move(acts);
  }
  size_t Left() {
    const MutexLock lock(mutex_);
    return acts_.size();
  }
  ServedRequest Asked(size_t number) {
    const MutexLock lock(mutex_);
    return requests_.at(number);
  }
  // Records the request and returns the next action.
  Act Take(const ServedRequest& request) {
    const MutexLock lock(mutex_);
    requests_.push_back(request);
    if (acts_.empty()) return Answer(404, Refusal(404, "NotFound", "does not exist"));
    Act act = std::move(acts_.front());
    acts_.pop_front();
    return act;
  }

  FakeTiming fake_;
  Mutex mutex_;
  std::deque<Act> acts_ GUARDED_BY(mutex_);
  std::vector<ServedRequest> requests_ GUARDED_BY(mutex_);
  HttpServer server_{[this](const ServedRequest& request, ServedConnection& connection) {
    Take(request)(connection);
  }};
  Connection connection_{
      Config{.server = server_.url(), .ns = "mine", .source = "the test"}, fake_.clock(), {}};
};

TEST_F(ClientTest, AsksWhereTheServerHasAnObject) {
  Client client = Make();
  Will({Answer(200, kPod), Answer(200, "{}"), Answer(200, "{}")});

  const auto pod = client.Get(kPods, kKey);
  ASSERT_OK(pod);
  EXPECT_EQ(pod->key(), kKey);
  EXPECT_OK(client.Get(kLeases, kKey));
  EXPECT_OK(client.Get(kPriorityClasses, {.name = "high"}));

  EXPECT_EQ(Asked(0).target, "/api/v1/namespaces/ns/pods/p");
  EXPECT_EQ(Asked(1).target, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/p");
  EXPECT_EQ(Asked(2).target, "/apis/scheduling.k8s.io/v1/priorityclasses/high");
}

TEST_F(ClientTest, NamesTheObjectAndTheRemedy) {
  Client client = Make({.tries = 1});
  Will({Answer(403, Refusal(403, "Forbidden", "User \"u\" cannot get resource \"pods\"")),
        Answer(403, Refusal(403, "Forbidden", "no PriorityClass with name x was found")),
        Answer(401, Refusal(401, "Unauthorized", "Unauthorized")),
        Answer(401, Refusal(401, "Unauthorized", "Unauthorized")), Break(), Break()});

  const Status denied = client.Get(kPods, kKey).status();
  EXPECT_THAT(denied, StatusIs(Code::kPermissionDenied));
  EXPECT_THAT(denied.message(),
              AllOf(HasSubstr("get pods ns/p: User \"u\" cannot get resource \"pods\""),
                    HasSubstr("`kubectl auth can-i get pods -n ns`")));
  EXPECT_EQ(client.Get(kPods, kKey).status().message(),
            "get pods ns/p: no PriorityClass with name x was found");
  const Status stranger = client.Get(kPods, kKey).status();
  EXPECT_THAT(stranger, StatusIs(Code::kUnauthenticated));
  EXPECT_THAT(stranger.message(), HasSubstr("credentials of the test"));
  const Status gone = client.List(kPods, "ns").status();
  EXPECT_THAT(gone.message(), HasSubstr("list pods in ns: "));
  EXPECT_THAT(gone, StatusIs(Code::kUnavailable));
  EXPECT_THAT(gone.message(), HasSubstr("check that the cluster of the test is running"));
}

TEST_F(ClientTest, ReadsAListInPages) {
  Client client = Make({.page_size = 2});
  Will({Answer(200, R"({"metadata":{"resourceVersion":"7","continue":"a/b"},
                           "items":[{"metadata":{"name":"p0"}},{"metadata":{"name":"p1"}}]})"),
        Answer(200, R"({"metadata":{"resourceVersion":"7"},
                           "items":[{"metadata":{"name":"p2"}}]})")});

  const auto list = client.List(kPods, "ns", {.labels = "app=a,b!=c", .fields = "spec.nodeName=n"});

  ASSERT_OK(list);
  EXPECT_EQ(list->resource_version, "7");
  ASSERT_THAT(list->items, SizeIs(3));
  EXPECT_EQ(list->items[2].name(), "p2");
  EXPECT_EQ(list->items[2].kind(), "Pod");
  EXPECT_EQ(Asked(0).target,
            "/api/v1/namespaces/ns/pods?labelSelector=app%3Da%2Cb%21%3Dc&fieldSelector=spec."
            "nodeName%3Dn&limit=2");
  EXPECT_THAT(Asked(1).target, HasSubstr("&continue=a%2Fb"));
}

TEST_F(ClientTest, BeginsAListAgainWhenItsPagesAreTooOld) {
  Client client = Make();
  const std::string expired = Refusal(410, "Expired", "the continue token is too old");
  Will({Answer(200, R"({"metadata":{"continue":"x"},"items":[{"metadata":{"name":"old"}}]})"),
        Answer(410, expired),
        Answer(200, R"({"metadata":{},"items":[{"metadata":{"name":"new"}}]})")});

  const auto list = client.List(kPods, "");

  ASSERT_OK(list);
  ASSERT_THAT(list->items, SizeIs(1));
  EXPECT_EQ(list->items[0].name(), "new");
  EXPECT_EQ(Asked(2).target, "/api/v1/pods?limit=500");
}

TEST_F(ClientTest, WaitsAsLongAsTheServerAsks) {
  Client client = Make();
  Will({Answer(429, "", "Retry-After: 2\r\n"), Answer(503, "", "Retry-After: 1\r\n"),
        Answer(201, kPod)});

  const Object nameless = *Object::Parse(R"({"metadata":{"generateName":"p"}})");
  const auto created = client.Create(kPods, nameless);

  EXPECT_OK(created);
  EXPECT_THAT(fake_.waits(), ElementsAre(seconds(2), seconds(1)));
  EXPECT_EQ(Asked(0).target, "/api/v1/namespaces/mine/pods");

  Will({Answer(429, ""), Answer(201, kPod)});
  EXPECT_OK(client.Create(kPods, nameless)) << "also when it does not say how long";
  EXPECT_THAT(fake_.waits(), SizeIs(3));
}

// Two Breaks for a reused connection, because libcurl itself repeats the request on a new one.
TEST_F(ClientTest, RepeatsSafeCallsAfterABrokenConnection) {
  Client client = Make();
  fake_.set_chance(1);

  Will({Break(), Break(), Answer(200, kPod)});
  EXPECT_OK(client.Get(kPods, kKey));
  EXPECT_THAT(fake_.waits(), ElementsAre(milliseconds(100), milliseconds(200)));

  Will({Break(), Answer(409, Refusal(409, "AlreadyExists", "it is there"))});
  EXPECT_THAT(client.Create(kPods, Object(kPods, kKey)), StatusIs(Code::kAlreadyExists));

  Will({Break(), Answer(201, kPod)});
  const auto nameless =
      client.Create(kPods, *Object::Parse(R"({"metadata":{"generateName":"p"}})"));
  EXPECT_THAT(nameless, StatusIs(Code::kUnavailable));
  EXPECT_EQ(Left(), 1);

  Will({Break(), Answer(200, kPod)});
  EXPECT_THAT(client.Patch(kPods, kKey, json::array(), {.type = PatchType::kJson}),
              StatusIs(Code::kUnavailable));
  EXPECT_OK(client.Patch(kPods, kKey, json::object()));
}

TEST_F(ClientTest, ChecksBeforeEachAttemptWhetherItMayWrite) {
  int allowed = 1;
  Client client = Make({.may_write = [&] { return allowed-- > 0; }});
  Will({Answer(503, ""), Answer(200, kPod)});

  EXPECT_THAT(client.Update(kPods, Object(kPods, kKey)), StatusIs(Code::kCancelled));
  EXPECT_EQ(Left(), 1);
  EXPECT_OK(client.Get(kPods, kKey));
}

TEST_F(ClientTest, DoesNotRepeatARefusalOfTheCallItself) {
  Client client = Make();
  for (const int status : {400, 403, 404, 409, 422, 500}) {
    Will({Answer(status, ""), Answer(200, kPod)});
    EXPECT_FALSE(client.Update(kPods, Object(kPods, kKey)).ok()) << status;
    EXPECT_EQ(Left(), 1) << status;
  }
  EXPECT_THAT(fake_.waits(), IsEmpty());
}

TEST_F(ClientTest, GivesUpAfterSoManyTriesOrSoLong) {
  Client few = Make({.tries = 3});
  Will({Answer(500, ""), Answer(500, ""), Answer(500, ""), Answer(200, kPod)});
  EXPECT_THAT(few.Get(kPods, kKey), StatusIs(Code::kUnavailable));
  EXPECT_EQ(Left(), 1);

  Client impatient = Make({.retry_timeout = seconds(25)});
  Will({Answer(503, "", "Retry-After: 20\r\n"), Answer(503, "", "Retry-After: 20\r\n"),
        Answer(200, kPod)});
  EXPECT_THAT(impatient.Get(kPods, kKey), StatusIs(Code::kUnavailable));
  EXPECT_EQ(Left(), 1);
}

TEST_F(ClientTest, StopsWaitingWhenTold) {
  Client client = Make();
  std::stop_source stop;
  fake_.set_on_wait([&] { stop.request_stop(); });
  Will({Answer(503, "", "Retry-After: 1\r\n"), Answer(200, kPod)});
  EXPECT_THAT(client.Get(kPods, kKey, stop.get_token()), StatusIs(Code::kCancelled));
}

TEST_F(ClientTest, KeepsToItsRate) {
  Client client = Make({.calls_per_second = 10, .burst = 1});
  Will({Answer(200, kPod), Answer(200, kPod), Answer(200, kPod)});
  for (int i = 0; i < 3; ++i) EXPECT_OK(client.Get(kPods, kKey));
  EXPECT_THAT(fake_.waits(), ElementsAre(milliseconds(100), milliseconds(100)));
}

TEST_F(ClientTest, SendsUpdatesAndPatchesAsTheApiExpects) {
  Client client = Make();
  Will({Answer(200, kPod), Answer(200, kPod), Answer(200, kPod), Answer(200, kPod)});
  Object pod(kPods, kKey);
  pod.set_resource_version("5");

  EXPECT_OK(client.Update(kPods, pod));
  EXPECT_OK(client.UpdateStatus(kPods, pod));
  EXPECT_OK(client.Patch(kPods, kKey, json{{"a", nullptr}}, {.subresource = "status"}));
  EXPECT_OK(client.Patch(kPods, kKey, pod.fields(),
                         {.type = PatchType::kApply, .field_manager = "me", .force = true}));

  EXPECT_EQ(Asked(0).method + " " + Asked(0).target, "PUT /api/v1/namespaces/ns/pods/p");
  EXPECT_EQ(json::parse(Asked(0).body), pod.fields());
  EXPECT_EQ(Asked(1).target, "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(Asked(2).headers["content-type"], "application/merge-patch+json");
  EXPECT_EQ(Asked(2).target, "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(Asked(2).body, R"({"a":null})");
  EXPECT_EQ(Asked(3).headers["content-type"], "application/apply-patch+yaml");
  EXPECT_EQ(Asked(3).target, "/api/v1/namespaces/ns/pods/p?fieldManager=me&force=true");
}

TEST_F(ClientTest, AsksWhetherAnObjectWouldBeTaken) {
  Client client = Make();
  Will({Answer(403, Refusal(403, "Forbidden", "exceeded quota: cpu, used: 4"))});

  EXPECT_THAT(client.CreateDryRun(kPods, Object(kPods, kKey)), StatusIs(Code::kResourceExhausted));

  EXPECT_EQ(Asked(0).target, "/api/v1/namespaces/ns/pods?dryRun=All");
}

TEST_F(ClientTest, DeletesObjectsAndAcceptsMissingOnes) {
  Client client = Make();
  Will({Answer(202, kPod), Answer(404, ""), Answer(409, Refusal(409, "Conflict", "other uid"))});

  EXPECT_OK(client.Delete(kPods, kKey,
                          {.propagation = Propagation::kForeground,
                           .grace = seconds(0),
                           .uid = "u",
                           .resource_version = "5"}));
  EXPECT_OK(client.Delete(kPods, kKey));
  EXPECT_THAT(client.Delete(kPods, kKey, {.uid = "other"}), StatusIs(Code::kAborted));

  EXPECT_EQ(json::parse(Asked(0).body),
            json::parse(R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,
                            "propagationPolicy":"Foreground",
                            "preconditions":{"uid":"u","resourceVersion":"5"}})"));
}

TEST_F(ClientTest, ReadsAndFollowsLogs) {
  Client client = Make();
  Will({Answer(200, "all of it\n"), [](ServedConnection& connection) {
          connection.BeginChunks();
          connection.Chunk("one\n");
          connection.Chunk("two\n");
          connection.EndChunks();
        }});

  const auto log = client.Log(kKey, {.container = "c", .tail_lines = 3});
  ASSERT_OK(log);
  EXPECT_EQ(*log, "all of it\n");
  auto stream = client.FollowLog(kKey, {.since = seconds(9),
                                        .since_time = "2026-11-15T10:00:00Z",
                                        .limit_bytes = 7,
                                        .timestamps = true});
  ASSERT_OK(stream);
  std::string followed;
  for (auto bytes = (*stream)->Read(); bytes.ok() && !bytes->empty(); bytes = (*stream)->Read()) {
    followed += *bytes;
  }

  EXPECT_EQ(followed, "one\ntwo\n");
  EXPECT_EQ(Asked(0).target, "/api/v1/namespaces/ns/pods/p/log?container=c&tailLines=3");
  EXPECT_EQ(Asked(1).target,
            "/api/v1/namespaces/ns/pods/p/log?follow=true&sinceSeconds=9&sinceTime=2026-11-"
            "15T10%3A00%3A00Z&limitBytes=7&timestamps=true");
}

TEST_F(ClientTest, SaysWhyThereIsNoLog) {
  Client client = Make();
  Will({Answer(400, Refusal(400, "BadRequest", "container \"c\" is waiting to start"))});
  auto stream = client.FollowLog(kKey);
  ASSERT_OK(stream);
  EXPECT_THAT((*stream)->Read(), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT((*stream)->Read(), StatusIs(Code::kInvalidArgument));
}

TEST_F(ClientTest, WatchesFromAVersion) {
  Client client = Make();
  Will({[](ServedConnection& connection) {
    connection.BeginChunks();
    connection.Chunk(R"({"type":"ADDED","object":{"metadata":{"na)");
    connection.Chunk(R"(me":"p"}}}
{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old"}}
)");
    connection.EndChunks();
  }});

  auto watch = client.Watch(kPods, "ns", {.selector = {.labels = "a"}, .resource_version = "7"});
  ASSERT_OK(watch);
  const auto added = (*watch)->Next();
  ASSERT_OK(added);
  EXPECT_EQ(Object((*added)->object).name(), "p");
  EXPECT_THAT((*watch)->Next(), StatusIs(Code::kOutOfRange));

  EXPECT_EQ(Asked(0).target,
            "/api/v1/namespaces/ns/pods?labelSelector=a&watch=1&allowWatchBookmarks=true&"
            "resourceVersion=7&timeoutSeconds=300");
}

TEST_F(ClientTest, EndsAWatchThatNobodyReadsAnyMore) {
  Client client = Make();
  Will({[](ServedConnection& connection) {
    connection.BeginChunks();
    connection.AwaitClose();
  }});
  auto watch = client.Watch(kPods, "ns", {});
  ASSERT_OK(watch);
  auto ended = std::async(std::launch::async, [&] { watch->reset(); });

  EXPECT_OK(AwaitReady(ended, "the end of a watch whose server sends nothing"));
}

TEST_F(ClientTest, ReportsWhetherTheCallerIsAllowed) {
  Client client = Make();
  Will({Answer(201, R"({"status":{"allowed":true,"reason":"by role"}})"), Answer(201, "{}")});

  const auto may = client.CanI(
      {.verb = "create", .resource = kLeases, .subresource = "status", .ns = "ns", .name = "job"});
  ASSERT_OK(may);
  EXPECT_TRUE(may->allowed);
  EXPECT_EQ(may->reason, "by role");
  EXPECT_FALSE(client.CanI({.verb = "get", .resource = kPods})->allowed);

  EXPECT_EQ(Asked(0).target, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
  EXPECT_EQ(json::parse(Asked(0).body)["spec"]["resourceAttributes"],
            json::parse(R"({"verb":"create","group":"coordination.k8s.io","resource":"leases",
                            "subresource":"status","namespace":"ns","name":"job"})"));
}

TEST_F(ClientTest, AsksForAServiceAccountInItsNamespace) {
  Client client = Make();
  Will({Answer(201, R"({"status":{"allowed":true}})"),
        Answer(403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"no"})")});
  const Access access{.verb = "create", .resource = kPods, .ns = "ns"};

  EXPECT_TRUE(client.CanAccount({"ns", "trainer"}, access)->allowed);
  EXPECT_THAT(client.CanAccount({"ns", "trainer"}, access), StatusIs(Code::kPermissionDenied));

  EXPECT_EQ(Asked(0).target,
            "/apis/authorization.k8s.io/v1/namespaces/ns/localsubjectaccessreviews");
  const json body = json::parse(Asked(0).body);
  EXPECT_EQ(body["metadata"]["namespace"], "ns");
  EXPECT_EQ(body["spec"]["user"], "system:serviceaccount:ns:trainer");
  EXPECT_EQ(body["spec"]["groups"][1], "system:serviceaccounts:ns");
  EXPECT_EQ(body["spec"]["resourceAttributes"]["resource"], "pods");
}

TEST_F(ClientTest, ReadsTheServersVersion) {
  Client client = Make();
  Will({Answer(200, R"({"gitVersion":"v1.29.3"})")});
  EXPECT_EQ(client.ServerVersion().value(), "v1.29.3");
  EXPECT_EQ(Asked(0).target, "/version");
}

}  // namespace
}  // namespace edl::kube
