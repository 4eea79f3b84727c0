#include "master/metrics.h"

#include <array>
#include <map>
#include <string>
#include <utility>

#include "metrics/catalog.h"

#include "base/version.h"

namespace edl::master {
namespace {

using job::JobState;
using job::ReplicaState;

// Programs choose the names of their metrics, and each name is a series of Prometheus.
constexpr size_t kMostProgramMetrics = 64;

constexpr std::array kStates = {JobState::kStarting,  JobState::kRunning, JobState::kFinishing,
                                JobState::kSucceeded, JobState::kFailed,  JobState::kStopped};

void AddJob(const Core& core, metrics::Exposition& out) {
  out.Begin(metrics::kJobInfo);
  out.Add({kVersion}, uint64_t{1});
  out.Begin(metrics::kJobState);
  for (const JobState state : kStates) {
    out.Add({job::NameOf(state)}, uint64_t{state == core.state()});
  }
  out.AddOnly(metrics::kJobStart, core.started_at());
  out.AddOnly(metrics::kJobRun, core.run_seconds());
  out.AddOnly(metrics::kJobBatches, core.dispatcher().counters().version);
  out.AddOnly(metrics::kMasterStarts, core.master_starts());
  out.AddOnly(metrics::kMasterPaused, uint64_t{core.paused()});
}

void AddReplicas(const Core& core, metrics::Exposition& out) {
  std::map<std::pair<job::Role, ReplicaState>, uint64_t> counts;
  for (const auto& [name, replica] : core.keeper().replicas()) {
    // A role stays in the metrics when its last replica has ended.
    uint64_t& pending = counts[{replica.row.replica.role, ReplicaState::kPending}];
    uint64_t& running = counts[{replica.row.replica.role, ReplicaState::kRunning}];
    pending += replica.row.state == ReplicaState::kPending ? 1 : 0;
    running += replica.row.state == ReplicaState::kRunning ? 1 : 0;
  }
  out.Begin(metrics::kReplicas);
  for (const auto& [key, count] : counts) {
    out.Add({job::NameOf(key.first), job::NameOf(key.second)}, count);
  }
  out.AddOnly(metrics::kRelaunches, core.keeper().relaunches());
  out.AddOnly(metrics::kSessions, uint64_t{core.sessions().size()});
  out.AddOnly(metrics::kCallsWaiting, uint64_t{core.dispatcher().waiting()});
}

void AddDatasets(const Core& core, metrics::Exposition& out) {
  const std::array<std::pair<const metrics::Metric&, int64_t job::DatasetView::*>, 8> numbers = {
      {{metrics::kDatasetRecords, &job::DatasetView::records_total},
       {metrics::kDatasetRecordsDone, &job::DatasetView::records_done},
       {metrics::kDatasetRecordsNotTrained, &job::DatasetView::records_not_trained},
       {metrics::kDatasetEpoch, &job::DatasetView::epoch},
       {metrics::kDatasetShardsDone, &job::DatasetView::shards_done},
       {metrics::kDatasetShardsLeased, &job::DatasetView::leases},
       {metrics::kDatasetShardsRepeated, &job::DatasetView::shards_repeated},
       {metrics::kDatasetShardsQuarantined, &job::DatasetView::shards_quarantined}}};
  std::vector<job::DatasetView> views;
  for (const auto& [name, dataset] : core.dispatcher().datasets()) {
    views.push_back(dataset->View());
    views.back().leases = core.dispatcher().LeasesOf(*dataset);
  }
  for (const auto& [metric, member] : numbers) {
    out.Begin(metric);
    for (const job::DatasetView& view : views) {
      const bool endless = member == &job::DatasetView::records_total && view.records_total == 0;
      if (!endless) out.Add({view.name, view.task_type}, view.*member);
    }
  }
}

void AddNamed(const metrics::Metric& metric, const std::map<std::string, double>& values,
              metrics::Exposition& out) {
  out.Begin(metric);
  size_t count = 0;
  for (const auto& [name, value] : values) {
    if (count++ == kMostProgramMetrics) break;
    out.Add({name}, value);
  }
}

void AddProgram(const Core& core, metrics::Exposition& out) {
  AddNamed(metrics::kProgramMetric, core.progress().metrics(), out);
  const auto& evaluations = core.model().evaluations();
  if (!evaluations.empty()) {
    AddNamed(metrics::kEvaluationMetric, evaluations.back().metrics, out);
  }
}

void AddServers(const Core& core, metrics::Exposition& out) {
  if (!core.parameters().enabled()) return;
  out.Begin(metrics::kPsUp);
  for (const job::ServerView& server : core.parameters().View(core.now())) {
    out.Add({std::to_string(server.index)}, uint64_t{server.reason.empty()});
  }
  if (core.checkpoint_at().has_value()) {
    out.AddOnly(metrics::kCheckpointTime, *core.checkpoint_at());
  }
  out.AddOnly(metrics::kCheckpointsDamaged, uint64_t{core.parameters().bad_checkpoints().size()});
}

}  // namespace

void AddMetrics(const Core& core, const LoopTimes& times, metrics::Exposition& out) {
  AddJob(core, out);
  AddReplicas(core, out);
  AddDatasets(core, out);
  AddProgram(core, out);
  AddServers(core, out);
  out.Begin(metrics::kRounds);
  out.Add({}, times.rounds.Read());
  out.Begin(metrics::kCommits);
  out.Add({}, times.commits.Read());
}

}  // namespace edl::master
