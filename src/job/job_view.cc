#include "job/job_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace edl::job {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 6> kJobStates = {"starting",  "running", "finishing",
                                                        "succeeded", "failed",  "stopped"};
constexpr std::array<std::string_view, 6> kReplicaStates = {"pending", "running", "succeeded",
                                                            "failed",  "killed",  "stopped"};

template <typename State, size_t n>
State StateFromName(const std::array<std::string_view, n>& names, const std::string& name) {
  for (size_t i = 0; i < n; ++i) {
    if (names.at(i) == name) return static_cast<State>(i);
  }
  throw json::other_error::create(500, "unknown state '" + name + "'", nullptr);
}

// JSON has no NaN and no infinity, but a view with a diverged loss must stay readable.
json WriteNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double ReadNumber(const json& in) {
  if (in.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!in.is_string()) return in.get<double>();
  const std::string& text = in.get_ref<const std::string&>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

// Leaves `out` unchanged if the key is missing or null, because other versions have fewer or more
// keys.
template <typename Value>
void Read(const json& in, const char* key, Value& out) {
  const auto found = in.find(key);
  if (found == in.end() || found->is_null()) return;
  if constexpr (std::is_same_v<Value, double>) {
    out = ReadNumber(*found);
  } else {
    found->get_to(out);
  }
}

template <typename State, size_t n>
void ReadState(const json& in, const std::array<std::string_view, n>& names, State& out) {
  std::string name;
  Read(in, "state", name);
  if (!name.empty()) out = StateFromName<State>(names, name);
}

json Write(const ReplicaView& view) {
  return {{"name", view.name},     {"role", view.role},           {"index", view.index},
          {"id", view.id},         {"state", NameOf(view.state)}, {"pid", view.process_id},
          {"reason", view.reason}, {"leases", view.leases}};
}

ReplicaView ReadReplica(const json& in) {
  ReplicaView view;
  Read(in, "name", view.name);
  Read(in, "role", view.role);
  Read(in, "index", view.index);
  Read(in, "id", view.id);
  ReadState(in, kReplicaStates, view.state);
  Read(in, "pid", view.process_id);
  Read(in, "reason", view.reason);
  Read(in, "leases", view.leases);
  return view;
}

json Write(const DatasetView& view) {
  return {{"name", view.name},
          {"task_type", view.task_type},
          {"size", view.size},
          {"epochs", view.epochs},
          {"epoch", view.epoch},
          {"records_done", view.records_done},
          {"records_total", view.records_total},
          {"shards_done", view.shards_done},
          {"leases", view.leases},
          {"shards_repeated", view.shards_repeated},
          {"shards_quarantined", view.shards_quarantined},
          {"records_not_trained", view.records_not_trained},
          {"finished", view.finished}};
}

DatasetView ReadDataset(const json& in) {
  DatasetView view;
  Read(in, "name", view.name);
  Read(in, "task_type", view.task_type);
  Read(in, "size", view.size);
  Read(in, "epochs", view.epochs);
  Read(in, "epoch", view.epoch);
  Read(in, "records_done", view.records_done);
  Read(in, "records_total", view.records_total);
  Read(in, "shards_done", view.shards_done);
  Read(in, "leases", view.leases);
  Read(in, "shards_repeated", view.shards_repeated);
  Read(in, "shards_quarantined", view.shards_quarantined);
  Read(in, "records_not_trained", view.records_not_trained);
  Read(in, "finished", view.finished);
  return view;
}

json Write(const ServerView& view) {
  return {{"index", view.index},
          {"ps_epoch", view.ps_epoch.value()},
          {"rows", view.rows},
          {"bytes", view.bytes},
          {"evicted", view.evicted},
          {"reason", view.reason},
          {"rows_pulled_per_s", WriteNumber(view.rows_pulled_per_s)},
          {"rows_pushed_per_s", WriteNumber(view.rows_pushed_per_s)}};
}

ServerView ReadServer(const json& in) {
  ServerView view;
  Read(in, "index", view.index);
  uint64_t ps_epoch = 0;
  Read(in, "ps_epoch", ps_epoch);
  view.ps_epoch = PsEpoch(ps_epoch);
  Read(in, "rows", view.rows);
  Read(in, "bytes", view.bytes);
  Read(in, "evicted", view.evicted);
  Read(in, "reason", view.reason);
  Read(in, "rows_pulled_per_s", view.rows_pulled_per_s);
  Read(in, "rows_pushed_per_s", view.rows_pushed_per_s);
  return view;
}

template <typename View>
void ReadList(const json& in, const char* key, View (*read)(const json&), std::vector<View>& out) {
  const auto found = in.find(key);
  if (found == in.end() || !found->is_array()) return;
  for (const json& item : *found) out.push_back(read(item));
}

json Write(const EvaluationView& evaluation) {
  json out = {{"version", evaluation.version}, {"text", evaluation.text}};
  out["metrics"] = json::object();
  for (const auto& [name, value] : evaluation.metrics) out["metrics"][name] = WriteNumber(value);
  return out;
}

EvaluationView ReadEvaluation(const json& in) {
  EvaluationView out;
  Read(in, "version", out.version);
  Read(in, "text", out.text);
  if (const auto found = in.find("metrics"); found != in.end() && found->is_object()) {
    for (const auto& [name, value] : found->items()) out.metrics[name] = ReadNumber(value);
  }
  return out;
}

}  // namespace

std::string ToJson(const std::vector<EvaluationView>& evaluations) {
  json out = json::array();
  for (const EvaluationView& evaluation : evaluations) out.push_back(Write(evaluation));
  return Dump(out);
}

Result<std::vector<EvaluationView>> EvaluationsFromJson(std::string_view text) {
  std::vector<EvaluationView> out;
  const json in = ReadJson(text);
  if (!in.is_array()) return InvalidArgument("cannot parse a list of evaluations");
  try {
    for (const json& item : in) out.push_back(ReadEvaluation(item));
  } catch (const json::exception& error) {
    return InvalidArgument("cannot parse a list of evaluations: {}", error.what());
  }
  return out;
}

std::string_view NameOf(JobState state) { return kJobStates.at(static_cast<size_t>(state)); }
std::optional<JobState> JobStateFromName(std::string_view name) {
  const auto found = std::find(kJobStates.begin(), kJobStates.end(), name);
  if (found == kJobStates.end()) return std::nullopt;
  return static_cast<JobState>(found - kJobStates.begin());
}
std::string_view NameOf(ReplicaState state) {
  return kReplicaStates.at(static_cast<size_t>(state));
}
bool IsFinal(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed || state == JobState::kStopped;
}

bool MayTrain(JobState state) {
  return state == JobState::kStarting || state == JobState::kRunning;
}

bool HasEnded(ReplicaState state) {
  return state != ReplicaState::kPending && state != ReplicaState::kRunning;
}

std::string JobView::ToJson(int indent) const {
  json out = {{"view_version", kVersion},        {"name", name},
              {"state", NameOf(state)},          {"reason", reason},
              {"success_rule", success_rule},    {"paused", paused},
              {"last_lines", last_lines},        {"remarks", remarks},
              {"started_at", started_at},        {"ended_at", ended_at},
              {"ran_seconds", ran_seconds},      {"version", version},
              {"relaunches", relaunches},        {"master_starts", master_starts},
              {"master_pid", master_process_id}, {"http_address", http_address},
              {"evaluation", evaluation},        {"checkpoint_step", checkpoint_step},
              {"evaluated_step", evaluated_step}};
  out["metrics"] = json::object();
  for (const auto& [metric, value] : metrics) out["metrics"][metric] = WriteNumber(value);
  out["datasets"] = json::array();
  for (const DatasetView& dataset : datasets) out["datasets"].push_back(Write(dataset));
  out["replicas"] = json::array();
  for (const ReplicaView& replica : replicas) out["replicas"].push_back(Write(replica));
  if (!servers.empty()) {
    out["checkpoint"] = checkpoint;
    out["servers"] = json::array();
    for (const ServerView& server : servers) out["servers"].push_back(Write(server));
  }
  if (!evaluations.empty()) {
    out["evaluations"] = json::array();
    for (const EvaluationView& evaluation : evaluations) {
      out["evaluations"].push_back(Write(evaluation));
    }
  }
  if (updated_at > 0) out["updated_at"] = updated_at;
  if (replicas_left_out > 0) out["replicas_left_out"] = replicas_left_out;
  // The output of a user's program may not be UTF-8.
  return Dump(out, indent);
}

Result<JobView> JobView::FromJson(std::string_view text) {
  const json in = ReadJson(text);
  if (!in.is_object()) {
    return InvalidArgument("cannot parse the job's status: it is {}",
                           text.empty() ? "empty" : "not a JSON object");
  }
  try {
    JobView view;
    int64_t written_by = kVersion;
    Read(in, "view_version", written_by);
    if (written_by > kVersion) {
      return FailedPrecondition(
          "cannot parse the job's status: it has version {}, but this elasticdl supports only {}; "
          "use "
          "the newer elasticdl that wrote it",
          written_by, kVersion);
    }
    Read(in, "name", view.name);
    ReadState(in, kJobStates, view.state);
    Read(in, "reason", view.reason);
    Read(in, "success_rule", view.success_rule);
    Read(in, "paused", view.paused);
    Read(in, "last_lines", view.last_lines);
    Read(in, "remarks", view.remarks);
    Read(in, "started_at", view.started_at);
    Read(in, "ended_at", view.ended_at);
    Read(in, "ran_seconds", view.ran_seconds);
    Read(in, "version", view.version);
    Read(in, "relaunches", view.relaunches);
    Read(in, "master_starts", view.master_starts);
    Read(in, "master_pid", view.master_process_id);
    Read(in, "http_address", view.http_address);
    if (const auto found = in.find("metrics"); found != in.end() && found->is_object()) {
      for (const auto& [metric, value] : found->items()) view.metrics[metric] = ReadNumber(value);
    }
    Read(in, "evaluation", view.evaluation);
    Read(in, "checkpoint_step", view.checkpoint_step);
    Read(in, "evaluated_step", view.evaluated_step);
    ReadList(in, "datasets", ReadDataset, view.datasets);
    ReadList(in, "replicas", ReadReplica, view.replicas);
    ReadList(in, "servers", ReadServer, view.servers);
    ReadList(in, "evaluations", ReadEvaluation, view.evaluations);
    Read(in, "checkpoint", view.checkpoint);
    Read(in, "updated_at", view.updated_at);
    Read(in, "replicas_left_out", view.replicas_left_out);
    return view;
  } catch (const json::exception& error) {
    return InvalidArgument("cannot parse the job's status: {}", error.what());
  }
}

}  // namespace edl::job
