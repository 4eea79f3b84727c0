#include "job/job_view.h"

#include <array>

#include <nlohmann/json.hpp>

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

json Write(const ReplicaView& view) {
  return {{"name", view.name},     {"role", view.role},           {"index", view.index},
          {"id", view.id},         {"state", NameOf(view.state)}, {"pid", view.process_id},
          {"reason", view.reason}, {"leases", view.leases}};
}

ReplicaView ReadReplica(const json& in) {
  ReplicaView view;
  in.at("name").get_to(view.name);
  in.at("role").get_to(view.role);
  in.at("index").get_to(view.index);
  in.at("id").get_to(view.id);
  view.state = StateFromName<ReplicaState>(kReplicaStates, in.at("state"));
  in.at("pid").get_to(view.process_id);
  in.at("reason").get_to(view.reason);
  in.at("leases").get_to(view.leases);
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
          {"shards_set_aside", view.shards_set_aside},
          {"records_not_trained", view.records_not_trained},
          {"finished", view.finished}};
}

DatasetView ReadDataset(const json& in) {
  DatasetView view;
  in.at("name").get_to(view.name);
  in.at("task_type").get_to(view.task_type);
  in.at("size").get_to(view.size);
  in.at("epochs").get_to(view.epochs);
  in.at("epoch").get_to(view.epoch);
  in.at("records_done").get_to(view.records_done);
  in.at("records_total").get_to(view.records_total);
  in.at("shards_done").get_to(view.shards_done);
  in.at("leases").get_to(view.leases);
  in.at("shards_repeated").get_to(view.shards_repeated);
  in.at("shards_set_aside").get_to(view.shards_set_aside);
  in.at("records_not_trained").get_to(view.records_not_trained);
  in.at("finished").get_to(view.finished);
  return view;
}

json Write(const ServerView& view) {
  return {{"index", view.index},
          {"ps_epoch", view.ps_epoch},
          {"rows", view.rows},
          {"bytes", view.bytes},
          {"evicted", view.evicted},
          {"reason", view.reason},
          {"rows_pulled_per_s", view.rows_pulled_per_s},
          {"rows_pushed_per_s", view.rows_pushed_per_s}};
}

ServerView ReadServer(const json& in) {
  ServerView view;
  in.at("index").get_to(view.index);
  in.at("ps_epoch").get_to(view.ps_epoch);
  in.at("rows").get_to(view.rows);
  in.at("bytes").get_to(view.bytes);
  in.at("evicted").get_to(view.evicted);
  view.reason = in.value("reason", "");
  in.at("rows_pulled_per_s").get_to(view.rows_pulled_per_s);
  in.at("rows_pushed_per_s").get_to(view.rows_pushed_per_s);
  return view;
}

}  // namespace

std::string_view NameOf(JobState state) { return kJobStates.at(static_cast<size_t>(state)); }
std::string_view NameOf(ReplicaState state) {
  return kReplicaStates.at(static_cast<size_t>(state));
}
bool IsFinal(JobState state) { return state >= JobState::kSucceeded; }

std::string JobView::ToJson(int indent) const {
  json out = {{"name", name},
              {"state", NameOf(state)},
              {"reason", reason},
              {"last_lines", last_lines},
              {"remarks", remarks},
              {"started_at", started_at},
              {"ended_at", ended_at},
              {"ran_seconds", ran_seconds},
              {"version", version},
              {"relaunches", relaunches},
              {"master_starts", master_starts},
              {"master_pid", master_process_id},
              {"metrics", metrics},
              {"evaluation", evaluation},
              {"checkpoint_step", checkpoint_step},
              {"evaluated_step", evaluated_step}};
  out["datasets"] = json::array();
  for (const DatasetView& dataset : datasets) out["datasets"].push_back(Write(dataset));
  out["replicas"] = json::array();
  for (const ReplicaView& replica : replicas) out["replicas"].push_back(Write(replica));
  if (!servers.empty()) {
    out["checkpoint"] = checkpoint;
    out["servers"] = json::array();
    for (const ServerView& server : servers) out["servers"].push_back(Write(server));
  }
  if (updated_at > 0) out["updated_at"] = updated_at;
  if (replicas_left_out > 0) out["replicas_left_out"] = replicas_left_out;
  // Output of a user's program need not be UTF-8.
  return out.dump(indent, ' ', false, json::error_handler_t::replace);
}

Result<JobView> JobView::FromJson(std::string_view text) {
  try {
    const json in = json::parse(text);
    JobView view;
    in.at("name").get_to(view.name);
    view.state = StateFromName<JobState>(kJobStates, in.at("state"));
    in.at("reason").get_to(view.reason);
    in.at("last_lines").get_to(view.last_lines);
    in.at("remarks").get_to(view.remarks);
    in.at("started_at").get_to(view.started_at);
    in.at("ended_at").get_to(view.ended_at);
    view.ran_seconds = in.value("ran_seconds", 0.0);
    in.at("version").get_to(view.version);
    in.at("relaunches").get_to(view.relaunches);
    in.at("master_starts").get_to(view.master_starts);
    in.at("master_pid").get_to(view.master_process_id);
    in.at("metrics").get_to(view.metrics);
    in.at("evaluation").get_to(view.evaluation);
    in.at("checkpoint_step").get_to(view.checkpoint_step);
    in.at("evaluated_step").get_to(view.evaluated_step);
    for (const json& dataset : in.at("datasets")) {
      view.datasets.push_back(ReadDataset(dataset));
    }
    for (const json& replica : in.at("replicas")) {
      view.replicas.push_back(ReadReplica(replica));
    }
    for (const json& server : in.value("servers", json::array())) {
      view.servers.push_back(ReadServer(server));
    }
    view.checkpoint = in.value("checkpoint", "");
    view.updated_at = in.value("updated_at", 0.0);
    view.replicas_left_out = in.value("replicas_left_out", int64_t{0});
    return view;
  } catch (const json::exception& error) {
    return InvalidArgument("a job's view cannot be read: {}", error.what());
  }
}

}  // namespace edl::job
