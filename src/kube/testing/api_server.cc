#include "kube/testing/api_server.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/testing/await.h"
#include "kube/api_path.h"

namespace edl::kube {

using nlohmann::json;

namespace {

std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(at + 1, 2)), nullptr, 16));
      at += 2;
    } else {
      out += text[at];
    }
  }
  return out;
}

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Collection CollectionOf(const Resource& resource) { return PathOf(resource, ""); }

PatchType PatchTypeOf(const std::string& content_type) {
  if (content_type == "application/json-patch+json") return PatchType::kJson;
  if (content_type == "application/apply-patch+yaml") return PatchType::kApply;
  if (content_type == "application/strategic-merge-patch+json") return PatchType::kStrategic;
  return PatchType::kMerge;
}

std::string Frame(const char* type, const json& object) {
  return Dump(json{{"type", type}, {"object", object}}) + "\n";
}

}  // namespace

// The object or collection that a request names.
struct ApiServer::Target {
  Collection collection;
  ObjectKey key;
  std::string subresource;
  std::map<std::string, std::string> query;

  std::string option(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
  Selector selector() const { return {option("labelSelector"), option("fieldSelector")}; }
};

struct ApiServer::Watching {
  Target target;
  Selector selector;
  int64_t version = 0;  // changes up to this one were sent
  size_t commands_done = 0;
  std::chrono::steady_clock::time_point until;
  bool breaks = false;
};

ApiServer::ApiServer()
    : server_([this](const ServedRequest& request, ServedConnection& connection) {
        Serve(request, connection);
      }) {}

ApiServer::~ApiServer() {
  const MutexLock lock(mutex_);
  ending_ = true;
  changed_.NotifyAll();
}

Config ApiServer::config() const {
  return {.server = server_.url(), .ns = "default", .source = "a server of this process"};
}

ApiServer::Target ApiServer::Parse(const std::string& text) {
  Target out;
  const size_t end = std::min(text.find('?'), text.size());
  if (end < text.size()) {
    for (const std::string& pair : Split(text.substr(end + 1), '&')) {
      const size_t equals = std::min(pair.find('='), pair.size());
      out.query[pair.substr(0, equals)] =
          equals == pair.size() ? "" : Decoded(std::string_view(pair).substr(equals + 1));
    }
  }
  std::vector<std::string> parts = Split(text.substr(0, end), '/');
  for (std::string& part : parts) part = Decoded(part);
  // "api", a version; or "apis", a group, a version.
  const size_t head = parts.empty() || parts[0] == "api" ? 2 : 3;
  for (size_t i = 0; i < head && i < parts.size(); ++i) out.collection += "/" + parts[i];
  size_t at = head;
  if (at + 2 < parts.size() && parts[at] == "namespaces") {
    out.key.ns = parts[at + 1];
    at += 2;
  }
  if (at < parts.size()) out.collection += "/" + parts[at++];
  if (at < parts.size()) out.key.name = parts[at++];
  if (at < parts.size()) out.subresource = parts[at];
  return out;
}

Object ApiServer::Put(const Resource& resource, const Object& object) {
  const MutexLock lock(mutex_);
  changed_.NotifyAll();
  return Object(store_.Put(CollectionOf(resource), object.fields()));
}

void ApiServer::Remove(const Resource& resource, const ObjectKey& key) {
  const MutexLock lock(mutex_);
  changed_.NotifyAll();
  store_.Remove(CollectionOf(resource), key);
}

void ApiServer::RemoveUnseen(const Resource& resource, const ObjectKey& key) {
  const MutexLock lock(mutex_);
  store_.Remove(CollectionOf(resource), key);
  store_.HideLastChange();
}

Result<Object> ApiServer::Get(const Resource& resource, const ObjectKey& key) {
  const MutexLock lock(mutex_);
  StoreReply reply = store_.Get(CollectionOf(resource), key);
  if (reply.status != 200) return NotFound("{} {} does not exist", resource.plural, key);
  return Object(std::move(reply.body));
}

void ApiServer::SetLog(const ObjectKey& pod, const std::string& text) {
  const MutexLock lock(mutex_);
  logs_[pod] = text;
}

void ApiServer::Deny(const std::string& user, const std::string& act) {
  const MutexLock lock(mutex_);
  denied_.emplace(user, act);
}

StoreReply ApiServer::Review(json review) const {
  const json& asked = FieldAt(review, {"spec", "resourceAttributes"});
  const std::string part = TextIn(asked, "subresource");
  const std::string act = fmt::format("{} {}{}", TextIn(asked, "verb"), TextIn(asked, "resource"),
                                      part.empty() ? "" : "/" + part);
  const bool denied = denied_.contains({TextIn(FieldAt(review, {"spec"}), "user"), act});
  review["status"] = {{"allowed", !denied}};
  return {201, std::move(review)};
}

void ApiServer::Inject(Fault fault) {
  const MutexLock lock(mutex_);
  faults_.push_back(std::move(fault));
}

void ApiServer::SplitFrames() {
  const MutexLock lock(mutex_);
  split_frames_ = true;
}

void ApiServer::Compact() {
  const MutexLock lock(mutex_);
  store_.Compact();
}

void ApiServer::Command(WatchCommand command) {
  const MutexLock lock(mutex_);
  commands_.push_back(command);
  changed_.NotifyAll();
}
void ApiServer::BookmarkWatches() { Command(WatchCommand::kBookmark); }
void ApiServer::EndWatches() { Command(WatchCommand::kEnd); }
void ApiServer::BreakWatches() { Command(WatchCommand::kBreak); }
void ApiServer::ExpireWatches() { Command(WatchCommand::kExpire); }

std::vector<std::string> ApiServer::requests() {
  const MutexLock lock(mutex_);
  return requests_;
}

int ApiServer::Count(const std::string& part) const {
  return static_cast<int>(std::count_if(
      requests_.begin(), requests_.end(),
      [&](const std::string& request) { return request.find(part) != std::string::npos; }));
}

int ApiServer::CountRequests(const std::string& part) {
  const MutexLock lock(mutex_);
  return Count(part);
}

void ApiServer::AwaitRequests(const std::string& part, int count) {
  const MutexLock lock(mutex_);
  const Status came = Await(mutex_, changed_, fmt::format("{} requests with \"{}\"", count, part),
                            [&]() REQUIRES(mutex_) { return Count(part) >= count; });
  if (came.ok()) return;
  ADD_FAILURE() << came.message()
                << fmt::format("; there were {} of {} requests:\n  {}", Count(part),
                               requests_.size(), fmt::join(requests_, "\n  "));
}

bool ApiServer::Misbehave(const ServedRequest& request, ServedConnection& connection) {
  const std::string asked = request.method + " " + request.target;
  Fault fault;
  {
    const MutexLock lock(mutex_);
    requests_.push_back(asked);
    changed_.NotifyAll();
    const auto found = std::find_if(faults_.begin(), faults_.end(), [&](const Fault& one) {
      return asked.find(one.part) != std::string::npos;
    });
    if (found == faults_.end()) return false;
    fault = *found;
    if (--found->times == 0) faults_.erase(found);
  }
  switch (fault.kind) {
    case Fault::Kind::kAnswer:
      connection.Answer(fault.status, fault.body, fault.headers);
      break;
    case Fault::Kind::kLost:
      Answer(request, Parse(request.target));
      [[fallthrough]];
    case Fault::Kind::kBreak:
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"kind\":");
      connection.Break();
      break;
    case Fault::Kind::kSilent:
      connection.AwaitClose();
      break;
  }
  return true;
}

void ApiServer::Serve(const ServedRequest& request, ServedConnection& connection) {
  if (Misbehave(request, connection)) return;
  const Target target = Parse(request.target);
  if (target.subresource == "log") return ServeLog(target, connection);
  if (!target.option("watch").empty()) return ServeWatch(target, connection);
  const StoreReply reply = Answer(request, target);
  connection.Answer(reply.status, Dump(reply.body), "Content-Type: application/json\r\n");
}

StoreReply ApiServer::Answer(const ServedRequest& request, const Target& target) {
  const MutexLock lock(mutex_);
  changed_.NotifyAll();
  json body = json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  if (!request.body.empty() && body.is_discarded()) {
    return Refuse(400, "BadRequest", "the body is not JSON");
  }
  if (request.target == "/version") return {200, {{"gitVersion", "v1.30.0"}}};
  if (request.method == "GET" && target.key.name.empty()) {
    const std::string limit = target.option("limit");
    return store_.List(target.collection, target.key.ns, target.selector(),
                       limit.empty() ? 0 : std::stoi(limit), target.option("continue"));
  }
  if (request.method == "GET") return store_.Get(target.collection, target.key);
  if (request.method == "DELETE" && target.key.name.empty()) {
    return store_.DeleteMany(target.collection, target.key.ns, target.selector(), body);
  }
  if (request.method == "DELETE") return store_.Delete(target.collection, target.key, body);
  if (request.method == "PATCH") {
    const auto type = request.headers.find("content-type");
    return store_.Patch(target.collection, target.key,
                        PatchTypeOf(type == request.headers.end() ? "" : type->second), body,
                        target.subresource);
  }
  if (!target.key.ns.empty()) body["metadata"]["namespace"] = target.key.ns;
  if (request.method == "PUT") {
    return store_.Replace(target.collection, target.key, std::move(body), target.subresource);
  }
  if (target.collection == CollectionOf(kSelfSubjectAccessReviews) ||
      target.collection == CollectionOf(kLocalSubjectAccessReviews)) {
    return Review(std::move(body));
  }
  if (target.option("dryRun") == "All") {
    ObjectStore copy = store_;
    return copy.Create(target.collection, std::move(body));
  }
  return store_.Create(target.collection, std::move(body));
}

void ApiServer::ServeLog(const Target& target, ServedConnection& connection) {
  std::string text;
  {
    const MutexLock lock(mutex_);
    const auto found = logs_.find(target.key);
    if (found != logs_.end()) text = found->second;
  }
  if (!text.empty()) return connection.Answer(200, text);
  const StoreReply refusal = Refuse(400, "BadRequest", "the container is waiting to start");
  connection.Answer(refusal.status, Dump(refusal.body));
}

void ApiServer::ServeWatch(const Target& target, ServedConnection& connection) {
  using std::chrono::seconds;
  Watching watching{.target = target, .selector = target.selector()};
  const std::string from = target.option("resourceVersion");
  const std::string timeout = target.option("timeoutSeconds");
  watching.until =
      std::chrono::steady_clock::now() + seconds(timeout.empty() ? 60 : std::stoi(timeout));
  bool split = false;
  {
    const MutexLock lock(mutex_);
    watching.version = from.empty() ? store_.version() : std::stoll(from);
    watching.commands_done = commands_.size();
    split = split_frames_;
    if (store_.forgotten(watching.version)) {
      const StoreReply refusal = Refuse(410, "Expired", "too old resource version: " + from);
      return connection.Answer(refusal.status, Dump(refusal.body));
    }
  }
  connection.BeginChunks();
  for (bool more = true; more;) {
    std::string frames;
    more = NextFrames(watching, frames);
    if (frames.empty()) continue;
    if (!split) connection.Chunk(frames);
    for (size_t at = 0; split && at < frames.size(); ++at) connection.Chunk(frames.substr(at, 1));
  }
  if (watching.breaks) return connection.Break();
  connection.EndChunks();
}

bool ApiServer::NextFrames(Watching& watching, std::string& frames) {
  const MutexLock lock(mutex_);
  while (store_.version() == watching.version && watching.commands_done == commands_.size() &&
         !ending_) {
    if (!changed_.WaitUntil(mutex_, watching.until)) return false;
  }
  for (const ObjectStore::Change& change : store_.changes()) {
    const Target& target = watching.target;
    if (change.version <= watching.version || change.collection != target.collection) continue;
    const std::string& ns = target.key.ns;
    if (!ns.empty() && Object(change.now).ns() != ns) continue;
    const bool was = !change.before.is_null() && Selects(watching.selector, change.before);
    const bool is = !change.deleted && Selects(watching.selector, change.now);
    // An object that no longer matches the selector is reported as deleted, in its last matching
    // state.
    json reported = is || change.deleted ? change.now : change.before;
    reported["metadata"]["resourceVersion"] = fmt::format("{}", change.version);
    if (was || is) frames += Frame(!is ? "DELETED" : was ? "MODIFIED" : "ADDED", reported);
  }
  watching.version = store_.version();
  bool over = ending_;
  for (; watching.commands_done < commands_.size() && !over; ++watching.commands_done) {
    const WatchCommand command = commands_[watching.commands_done];
    over = command != WatchCommand::kBookmark;
    watching.breaks = command == WatchCommand::kBreak;
    const json version = {{"resourceVersion", fmt::format("{}", watching.version)}};
    if (command == WatchCommand::kBookmark) frames += Frame("BOOKMARK", {{"metadata", version}});
    if (command == WatchCommand::kExpire) {
      frames += Frame("ERROR", Refuse(410, "Expired", "too old resource version").body);
    }
  }
  return !over;
}

}  // namespace edl::kube
