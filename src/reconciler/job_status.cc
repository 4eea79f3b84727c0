#include "reconciler/job_status.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "kube/text.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;

constexpr int kMostIndices = 100'000;

// A number of the stored status. Larger ones than any operator writes could overflow in sums.
int64_t CountIn(const json& in, const char* name) {
  return std::clamp<int64_t>(NumberIn(in, name), 0, 1'000'000'000);
}

std::optional<WallTime> TimeIn(const json& in, const char* name) {
  const std::string text = TextIn(in, name);
  return text.empty() ? std::nullopt : kube::ParseTime(text);
}

Conditions ParseConditions(const json& list) {
  Conditions out;
  for (const json& each : list) {
    const auto updated = TimeIn(each, "lastUpdateTime");
    const auto changed = TimeIn(each, "lastTransitionTime");
    out.Append({.type = TextIn(each, "type"),
                .is_true = TextIn(each, "status") == "True",
                .reason = TextIn(each, "reason"),
                .message = TextIn(each, "message"),
                .updated = updated.value_or(changed.value_or(WallTime())),
                .changed = changed.value_or(updated.value_or(WallTime()))});
  }
  return out;
}

json ConditionsJson(const Conditions& conditions) {
  json out = json::array();
  for (const Condition& each : conditions.all()) {
    out.push_back({{"type", each.type},
                   {"status", each.is_true ? "True" : "False"},
                   {"reason", each.reason},
                   {"message", each.message},
                   {"lastUpdateTime", kube::FormatTime(each.updated)},
                   {"lastTransitionTime", kube::FormatTime(each.changed)}});
  }
  return out;
}

// Zero is left out, as upstream does.
json CountsJson(const ReplicaCounts& counts) {
  json out = json::object();
  if (counts.active != 0) out["active"] = counts.active;
  if (counts.succeeded != 0) out["succeeded"] = counts.succeeded;
  if (counts.failed != 0) out["failed"] = counts.failed;
  return out;
}

void ParseOwn(const json& own, JobStatus& out) {
  out.retries = CountIn(own, "retries");
  for (const json& uid : ListAt(own, {"replacing"})) {
    if (uid.is_string()) out.replacing.insert(uid.get<std::string>());
  }
  const json& completed = FieldAt(own, {"completed"});
  if (completed.is_object()) {
    for (const auto& [role, indices] : completed.items()) {
      const auto type = ParseReplicaType(role);
      if (type && indices.is_string()) {
        out.completed[*type] = ParseIndices(indices.get<std::string>());
      }
    }
  }
  out.progress = TextIn(own, "progress");
}

json OwnJson(const JobStatus& status, const json& stored) {
  json out = stored.is_object() ? stored : json::object();
  for (const char* field : {"retries", "replacing", "completed", "progress"}) out.erase(field);
  if (status.retries != 0) out["retries"] = status.retries;
  if (!status.replacing.empty()) out["replacing"] = status.replacing;
  for (const auto& [type, indices] : status.completed) {
    if (!indices.empty()) {
      out["completed"][std::string(NameOf(type))] = FormatIndices(indices);
    }
  }
  if (!status.progress.empty()) out["progress"] = status.progress;
  return out;
}

void SetTime(json& out, const char* name, const std::optional<WallTime>& time) {
  out.erase(name);
  if (time) out[name] = kube::FormatTime(*time);
}

}  // namespace

bool JobStatus::IsCompleted(ReplicaType type, int index) const {
  const auto found = completed.find(type);
  return found != completed.end() && found->second.contains(index);
}

int64_t JobStatus::NumCompleted(ReplicaType type) const {
  const auto found = completed.find(type);
  return found == completed.end() ? 0 : static_cast<int64_t>(found->second.size());
}

std::string FormatIndices(const std::set<int>& indices) {
  std::string out;
  for (auto first = indices.begin(); first != indices.end();) {
    auto last = first;
    while (std::next(last) != indices.end() && *std::next(last) == *last + 1) ++last;
    if (!out.empty()) out += ",";
    out += *first == *last ? fmt::format("{}", *first) : fmt::format("{}-{}", *first, *last);
    first = std::next(last);
  }
  return out;
}

std::set<int> ParseIndices(const std::string& text) {
  std::set<int> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int first = 0;
    auto [after, error] = std::from_chars(at, end, first);
    const int least = out.empty() ? 0 : *out.rbegin() + 1;
    if (error != std::errc() || first < least) return out;
    int last = first;
    at = after;
    if (at < end && *at == '-') {
      const auto range = std::from_chars(at + 1, end, last);
      if (range.ec != std::errc() || last < first) return out;
      at = range.ptr;
    }
    for (int i = first; i <= last && i < kMostIndices; ++i) out.insert(out.end(), i);
    if (last >= kMostIndices) return out;
    if (at == end || *at != ',') return out;
    ++at;
  }
  return out;
}

JobStatus ParseStatus(const json& status) {
  JobStatus out;
  out.conditions = ParseConditions(ListAt(status, {"conditions"}));
  const json& replicas = FieldAt(status, {"replicaStatuses"});
  if (replicas.is_object()) {
    for (const auto& [role, counts] : replicas.items()) {
      if (const auto type = ParseReplicaType(role)) {
        out.replicas[*type] = {.active = CountIn(counts, "active"),
                               .succeeded = CountIn(counts, "succeeded"),
                               .failed = CountIn(counts, "failed")};
      }
    }
  }
  out.start_time = TimeIn(status, "startTime");
  out.completion_time = TimeIn(status, "completionTime");
  ParseOwn(FieldAt(status, {"elasticdl"}), out);
  return out;
}

json StatusJson(const JobStatus& status, const json& stored) {
  json out = stored.is_object() ? stored : json::object();
  out["conditions"] = ConditionsJson(status.conditions);
  json replicas = json::object();
  for (const auto& [type, counts] : status.replicas) {
    replicas[std::string(NameOf(type))] = CountsJson(counts);
  }
  out["replicaStatuses"] = std::move(replicas);
  SetTime(out, "startTime", status.start_time);
  SetTime(out, "completionTime", status.completion_time);
  json own = OwnJson(status, FieldAt(out, {"elasticdl"}));
  out.erase("elasticdl");
  if (!own.empty()) out["elasticdl"] = std::move(own);
  return out;
}

bool DifferOnlyInCounts(const JobStatus& a, const JobStatus& b) {
  JobStatus copy = b;
  copy.replicas = a.replicas;
  copy.progress = a.progress;
  return a == copy && !(a == b);
}

}  // namespace edl::reconciler
