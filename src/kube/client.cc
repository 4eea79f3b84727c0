#include "kube/client.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/backoff.h"
#include "base/json.h"
#include "base/log.h"
#include "kube/api_path.h"
#include "kube/api_status.h"

namespace edl::kube {
namespace {

using nlohmann::json;

constexpr BackoffLimits kRetry{.first = std::chrono::milliseconds(100),
                               .longest = std::chrono::seconds(5)};
// The longest wait that a server may request. Beyond it the caller gets the error sooner instead.
constexpr Duration kLongestRetryAfter = std::chrono::seconds(30);
constexpr int kMostListRestarts = 3;
constexpr size_t kMostWarnings = 1000;

constexpr std::array<std::string_view, 4> kPatchContentTypes = {
    "application/merge-patch+json", "application/strategic-merge-patch+json",
    "application/json-patch+json", "application/apply-patch+yaml"};

std::string NameOf(Propagation propagation) {
  switch (propagation) {
    case Propagation::kBackground:
      return "Background";
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      return "Orphan";
  }
  return "";
}

std::string BodyOf(const DeleteOptions& options) {
  json body = {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (options.propagation) body["propagationPolicy"] = NameOf(*options.propagation);
  if (options.grace) body["gracePeriodSeconds"] = options.grace->count();
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = options.resource_version;
  }
  return Dump(body);
}

Query QueryOf(const Selector& selector) {
  return Query().Add("labelSelector", selector.labels).Add("fieldSelector", selector.fields);
}

template <typename Number>
std::string TextOf(const std::optional<Number>& number) {
  return number ? fmt::format("{}", *number) : "";
}

enum class Follow { kNo, kYes };

std::string LogPath(const ObjectKey& pod, const LogOptions& options, Follow follow) {
  Query query;
  query.Add("container", options.container)
      .Add("follow", follow == Follow::kYes ? "true" : "")
      .Add("previous", options.previous ? "true" : "")
      .Add("tailLines", TextOf(options.tail_lines))
      .Add("sinceSeconds", options.since ? fmt::format("{}", options.since->count()) : "")
      .Add("sinceTime", options.since_time)
      .Add("limitBytes", TextOf(options.limit_bytes))
      .Add("timestamps", options.timestamps ? "true" : "");
  return PathOf(kPods, pod, "log") + query.text();
}

// What the user can do about the error, in parentheses; empty if nothing is known.
std::string Remedy(const Status& status, const Config& config, const std::string& can_i) {
  switch (status.code()) {
    case Code::kUnauthenticated:
      return fmt::format(" (the API server rejects the credentials of {}; log in again)",
                         config.source);
    case Code::kPermissionDenied:
      if (!IsMissingRole(status)) return "";
      return fmt::format(" (request a role that allows it; check with `kubectl auth can-i {}`)",
                         can_i);
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
      return fmt::format(
          " (check that the cluster of {} is running and reachable from this machine)",
          config.source);
    default:
      return "";
  }
}

}  // namespace

// One API call.
struct Client::Call {
  std::string verb;  // as in RBAC roles; appears in errors
  Resource resource;
  ObjectKey key;    // the name is empty for a collection
  Request request;  // request.once: the call must not be repeated
};

Client::Client(Connection& connection, Timing timing, ClientOptions options)
    : connection_(connection),
      timing_(std::move(timing)),
      options_(options),
      limit_(options.calls_per_second, options.burst, timing_.clock) {}

Status Client::AwaitRateLimit(const std::stop_token& stop) {
  const Duration turn = limit_.Take();
  if (turn > Duration(0) && !timing_.wait(turn, stop)) return Cancelled("the call was cancelled");
  return Ok();
}

void Client::LogWarnings(const std::vector<std::string>& warnings) {
  const MutexLock lock(mutex_);
  for (const std::string& warning : warnings) {
    if (warned_.size() < kMostWarnings && warned_.insert(warning).second) {
      LOG_WARNING("warning of the API server: {}", warning);
    }
  }
}

std::optional<Duration> Client::RetryDelay(const Call& call, const Result<Response>& answer,
                                           int tries) const {
  const Duration growing = WithJitter(kRetry.After(tries + 1), timing_.chance());
  if (!answer.ok()) {
    const bool broke = answer.status().code() == Code::kUnavailable;
    return broke && !call.request.once ? std::optional(growing) : std::nullopt;
  }
  const int status = answer->status;
  if (status != 429 && status < 500) return std::nullopt;
  if (const auto asked = RetryAfter(*answer)) return std::min<Duration>(*asked, kLongestRetryAfter);
  if (status == 429) return growing;
  // 500 is the answer to this call; for a write, it will not change.
  const bool again = status != 500 || call.request.method == "GET";
  return again && !call.request.once ? std::optional(growing) : std::nullopt;
}

Status Client::Explain(const Call& call, const Result<Response>& answer) const {
  Status status = answer.ok() ? StatusOf(*answer) : answer.status();
  if (status.ok() || status.code() == Code::kCancelled) return status;
  const ObjectKey& key = call.key;
  std::string where = " " + fmt::format("{}", key);
  if (key.name.empty()) where = key.ns.empty() ? "" : " in " + key.ns;
  const std::string can_i = fmt::format("{} {}{}", call.verb, call.resource.plural,
                                        key.ns.empty() ? "" : " -n " + key.ns);
  return Status(status.code(), fmt::format("{} {}{}: {}{}", call.verb, call.resource.plural, where,
                                           status.message(), Remedy(status, config(), can_i)));
}

Result<Response> Client::Send(const Call& call, const std::stop_token& stop) {
  const Time begun = timing_.clock.Now();
  for (int tries = 0;; ++tries) {
    EDL_RETURN_IF_ERROR(AwaitRateLimit(stop));
    if (options_.may_write && call.request.method != "GET" && !options_.may_write()) {
      return Cancelled("{} {} {}: this process may not write any more", call.verb,
                       call.resource.plural, call.key);
    }
    Result<Response> answer = connection_.Call(call.request, stop);
    if (answer.ok()) LogWarnings(answer->warnings);
    const std::optional<Duration> wait = RetryDelay(call, answer, tries);
    const Duration passed = timing_.clock.Now() - begun;
    if (!wait || tries + 1 >= options_.tries || passed + *wait > options_.retry_timeout) {
      EDL_RETURN_IF_ERROR(Explain(call, answer));
      return answer;
    }
    if (!timing_.wait(*wait, stop)) return Cancelled("the call was cancelled");
  }
}

Result<Object> Client::SendForObject(const Call& call, const std::stop_token& stop) {
  EDL_ASSIGN_OR_RETURN(const Response response, Send(call, stop));
  return Object::Parse(response.body);
}

Result<Object> Client::Get(const Resource& resource, const ObjectKey& key,
                           const std::stop_token& stop) {
  return SendForObject(
      {.verb = "get",
       .resource = resource,
       .key = key,
       .request = {.path = PathOf(resource, key, ""), .timeout = options_.timeout}},
      stop);
}

Result<ObjectList> Client::List(const Resource& resource, const std::string& ns,
                                const Selector& selector, const std::stop_token& stop) {
  // All pages of a list show the same moment. The server forgets it when reading them takes too
  // long.
  for (int restarts = 0;; ++restarts) {
    auto list = ListOnce(resource, ns, selector, stop);
    if (list.status().code() != Code::kOutOfRange || restarts == kMostListRestarts) return list;
  }
}

Result<ObjectList> Client::ListOnce(const Resource& resource, const std::string& ns,
                                    const Selector& selector, const std::stop_token& stop) {
  ObjectList out;
  std::string next;
  do {
    Query query = QueryOf(selector);
    query.Add("limit", fmt::format("{}", options_.page_size)).Add("continue", next);
    EDL_ASSIGN_OR_RETURN(Object page,
                         SendForObject({.verb = "list",
                                        .resource = resource,
                                        .key = {ns, ""},
                                        .request = {.path = PathOf(resource, ns) + query.text(),
                                                    .timeout = options_.timeout}},
                                       stop));
    out.resource_version = page.resource_version();
    next = TextIn(FieldAt(page.fields(), {"metadata"}), "continue");
    const auto items = page.fields().find("items");
    if (items == page.fields().end() || !items->is_array()) continue;
    for (json& item : *items) {
      Object object(std::move(item));
      object.fields()["apiVersion"] = resource.api_version();
      object.fields()["kind"] = std::string(resource.kind);
      if (options_.reduce) options_.reduce(object);
      out.items.push_back(std::move(object));
    }
  } while (!next.empty());
  return out;
}

Result<Object> Client::Create(const Resource& resource, const Object& object,
                              const std::stop_token& stop) {
  return Post(resource, object, "", stop);
}

Result<Object> Client::CreateDryRun(const Resource& resource, const Object& object,
                                    const std::stop_token& stop) {
  return Post(resource, object, "?dryRun=All", stop);
}

Result<Object> Client::Post(const Resource& resource, const Object& object,
                            const std::string& query, const std::stop_token& stop) {
  ObjectKey key = object.key();
  if (resource.namespaced && key.ns.empty()) key.ns = config().ns;
  return SendForObject({.verb = "create",
                        .resource = resource,
                        .key = key,
                        .request = {.method = "POST",
                                    .path = PathOf(resource, key.ns) + query,
                                    .body = Dump(object.fields()),
                                    .timeout = options_.timeout,
                                    .once = key.name.empty()}},
                       stop);
}

Result<Object> Client::Put(const Resource& resource, const Object& object,
                           const std::string& subresource, const std::stop_token& stop) {
  return SendForObject({.verb = "update",
                        .resource = resource,
                        .key = object.key(),
                        .request = {.method = "PUT",
                                    .path = PathOf(resource, object.key(), subresource),
                                    .body = Dump(object.fields()),
                                    .timeout = options_.timeout}},
                       stop);
}

Result<Object> Client::Update(const Resource& resource, const Object& object,
                              const std::stop_token& stop) {
  return Put(resource, object, "", stop);
}

Result<Object> Client::UpdateStatus(const Resource& resource, const Object& object,
                                    const std::stop_token& stop) {
  return Put(resource, object, "status", stop);
}

Result<Object> Client::Patch(const Resource& resource, const ObjectKey& key, const json& patch,
                             const PatchOptions& options, const std::stop_token& stop) {
  Query query;
  query.Add("fieldManager", options.field_manager).Add("force", options.force ? "true" : "");
  return SendForObject(
      {.verb = "patch",
       .resource = resource,
       .key = key,
       .request = {.method = "PATCH",
                   .path = PathOf(resource, key, options.subresource) + query.text(),
                   .body = Dump(patch),
                   .content_type =
                       std::string(kPatchContentTypes.at(static_cast<size_t>(options.type))),
                   .timeout = options_.timeout,
                   .once = options.type == PatchType::kJson}},
      stop);
}

Status Client::Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options,
                      const std::stop_token& stop) {
  const Status status = DeleteExisting(resource, key, options, stop);
  return status.code() == Code::kNotFound ? Ok() : status;
}

Status Client::DeleteExisting(const Resource& resource, const ObjectKey& key,
                              const DeleteOptions& options, const std::stop_token& stop) {
  return Send({.verb = "delete",
               .resource = resource,
               .key = key,
               .request = {.method = "DELETE",
                           .path = PathOf(resource, key, ""),
                           .body = BodyOf(options),
                           .timeout = options_.timeout}},
              stop)
      .status();
}

Status Client::DeleteMany(const Resource& resource, const std::string& ns, const Selector& selector,
                          const DeleteOptions& options, const std::stop_token& stop) {
  return Send({.verb = "deletecollection",
               .resource = resource,
               .key = {ns, ""},
               .request = {.method = "DELETE",
                           .path = PathOf(resource, ns) + QueryOf(selector).text(),
                           .body = BodyOf(options),
                           .timeout = options_.delete_many_timeout}},
              stop)
      .status();
}

Result<std::unique_ptr<ByteStream>> Client::Open(Request request, const std::stop_token& stop) {
  EDL_RETURN_IF_ERROR(AwaitRateLimit(stop));
  return std::make_unique<ByteStream>(connection_, std::move(request), stop);
}

Result<std::unique_ptr<WatchStream>> Client::Watch(const Resource& resource, const std::string& ns,
                                                   const WatchOptions& options,
                                                   const std::stop_token& stop) {
  // The server ends a watch after its timeout. A watch that lasts longer than that is considered
  // broken.
  constexpr std::chrono::seconds kLeeway{30};
  Query query = QueryOf(options.selector);
  query.Add("watch", "1")
      .Add("allowWatchBookmarks", "true")
      .Add("resourceVersion", options.resource_version)
      .Add("timeoutSeconds", fmt::format("{}", options.timeout.count()));
  EDL_ASSIGN_OR_RETURN(auto bytes, Open({.path = PathOf(resource, ns) + query.text(),
                                         .timeout = options.timeout + kLeeway,
                                         .silence = options.silence},
                                        stop));
  return std::make_unique<WatchStream>(std::move(bytes));
}

Result<std::string> Client::Log(const ObjectKey& pod, const LogOptions& options,
                                const std::stop_token& stop) {
  EDL_ASSIGN_OR_RETURN(
      Response response,
      Send({.verb = "log",
            .resource = kPods,
            .key = pod,
            .request = {.path = LogPath(pod, options, Follow::kNo), .timeout = options_.timeout}},
           stop));
  return std::move(response.body);
}

Result<std::unique_ptr<ByteStream>> Client::FollowLog(const ObjectKey& pod,
                                                      const LogOptions& options,
                                                      const std::stop_token& stop) {
  return Open(
      {.path = LogPath(pod, options, Follow::kYes), .timeout = std::chrono::milliseconds(0)}, stop);
}

Result<std::string> Client::ServerVersion(const std::stop_token& stop) {
  EDL_ASSIGN_OR_RETURN(const Object version,
                       SendForObject({.verb = "get",
                                      .resource = {.plural = "version"},
                                      .request = {.path = "/version", .timeout = options_.timeout}},
                                     stop));
  return TextIn(version.fields(), "gitVersion");
}

Result<AccessAnswer> Client::Review(const Resource& kind, const std::string& ns, json spec,
                                    const Access& access, const std::stop_token& stop) {
  Object review(kind, {});
  review.fields().erase("metadata");
  if (!ns.empty()) review.metadata()["namespace"] = ns;
  json& attributes = spec["resourceAttributes"];
  attributes = {{"verb", access.verb},
                {"group", std::string(access.resource.group)},
                {"resource", std::string(access.resource.plural)}};
  if (!access.subresource.empty()) attributes["subresource"] = access.subresource;
  if (!access.ns.empty()) attributes["namespace"] = access.ns;
  if (!access.name.empty()) attributes["name"] = access.name;
  review.fields()["spec"] = std::move(spec);
  EDL_ASSIGN_OR_RETURN(const Object answer,
                       SendForObject({.verb = "create",
                                      .resource = kind,
                                      .key = {ns, ""},
                                      .request = {.method = "POST",
                                                  .path = PathOf(kind, ns),
                                                  .body = Dump(review.fields()),
                                                  .timeout = options_.timeout}},
                                     stop));
  const json& status = FieldAt(answer.fields(), {"status"});
  return AccessAnswer{FlagIn(status, "allowed"), TextIn(status, "reason")};
}

Result<AccessAnswer> Client::CanI(const Access& access, const std::stop_token& stop) {
  return Review(kSelfSubjectAccessReviews, "", json::object(), access, stop);
}

Result<AccessAnswer> Client::CanAccount(const ObjectKey& account, const Access& access,
                                        const std::stop_token& stop) {
  // The user and the groups that Kubernetes assigns to a service account.
  json spec = {
      {"user", fmt::format("system:serviceaccount:{}:{}", account.ns, account.name)},
      {"groups",
       {"system:serviceaccounts", "system:serviceaccounts:" + account.ns, "system:authenticated"}}};
  return Review(kLocalSubjectAccessReviews, account.ns, std::move(spec), access, stop);
}

}  // namespace edl::kube
