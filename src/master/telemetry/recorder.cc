#include "master/telemetry/recorder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"

namespace edl::master {
namespace {

constexpr std::string_view kLog = "log.";
constexpr std::string_view kEvaluation = "evaluation.";

// Seconds. The last sample may follow the one before it immediately, and a rate in such a short
// time would mean nothing.
constexpr double kShortestInterval = 0.1;

double Number(int64_t number) { return static_cast<double>(number); }

// The shards of an endless dataset are those of the epoch that is leased.
int64_t NeverLeased(const Dataset& dataset) {
  const auto per_epoch = static_cast<int64_t>(dataset.shards_per_epoch());
  const int64_t epochs =
      dataset.endless() ? 1 : std::max<int64_t>(dataset.spec().epochs - dataset.row().epoch, 0);
  const int64_t leased = static_cast<int64_t>(dataset.row().next);
  return dataset.closed() ? 0 : std::max<int64_t>(epochs * per_epoch - leased, 0);
}

}  // namespace

void Recorder::Load(Time now, WallTime wall_now) {
  const Result<telemetry::Stored> stored = ledger_.Telemetry();
  Status loaded = stored.status();
  if (loaded.ok()) loaded = store_.Load(*stored);
  if (!loaded.ok()) {
    LOG_WARNING("ignoring the curves in the ledger, which are only shown: {}", loaded.message());
    damaged_ = true;
  }
  logged_before_ = store_.HighestStep(kLog);
  evaluated_before_ = store_.HighestStep(kEvaluation);
  flushed_at_ = now;
  Advance(now, wall_now);
}

void Recorder::Advance(Time now, WallTime wall_now) {
  now_ = now;
  store_.Advance(now, wall_now);
}

void Recorder::Add(std::string_view name, std::string_view unit, double value, int64_t step) {
  if (const auto series = store_.Define(name, unit)) store_.Add(*series, value, step);
}

void Recorder::AddAll(std::string_view prefix, const std::map<std::string, double>& values,
                      int64_t step) {
  for (const auto& [name, value] : values) Add(fmt::format("{}{}", prefix, name), "", value, step);
}

void Recorder::Sample() {
  if (store_.second() == sampled_second_) return;
  sampled_second_ = store_.second();
  const double passed =
      sampled_at_ ? std::chrono::duration<double>(now_ - *sampled_at_).count() : 0;
  sampled_at_ = now_;
  SampleShards(passed);
  SampleProcess(passed);
  SampleReplicas();
  SampleServers();
}

void Recorder::SampleShards(double passed) {
  int64_t training = 0;
  int64_t other = 0;
  bool trains = false;
  int64_t done = 0;
  int64_t waiting = 0;
  int64_t returned = 0;
  int64_t quarantined = 0;
  for (const auto& [name, dataset] : dispatcher_.datasets()) {
    const bool is_training = dataset->spec().task_type == TaskType::kTraining;
    trains = trains || is_training;
    (is_training ? training : other) += dataset->row().records_done;
    done += dataset->row().shards_done;
    waiting += NeverLeased(*dataset);
    returned += static_cast<int64_t>(dataset->returned_count());
    quarantined += static_cast<int64_t>(dataset->quarantined().size());
  }
  // As job::RecordsOf counts them.
  const int64_t records = trains ? training : other;
  // A reset dataset has fewer records than before.
  if (passed >= kShortestInterval && records_done_ && records >= *records_done_) {
    Add("records_per_s", "records/s", Number(records - *records_done_) / passed);
  }
  records_done_ = records;
  Add("batches", "batches", Number(dispatcher_.counters().version));
  Add("shards.done", "shards", Number(done));
  Add("shards.leased", "shards", Number(static_cast<int64_t>(dispatcher_.leases().size())));
  Add("shards.waiting", "shards", Number(waiting));
  Add("shards.returned", "shards", Number(returned));
  Add("shards.quarantined", "shards", Number(quarantined));
  Add("calls.waiting", "calls", Number(static_cast<int64_t>(dispatcher_.waiting())));
}

void Recorder::SampleReplicas() {
  constexpr size_t kRoles = static_cast<size_t>(job::Role::kEvaluator) + 1;
  constexpr size_t kStates = static_cast<size_t>(job::ReplicaState::kStopped) + 1;
  std::array<std::array<int64_t, kStates>, kRoles> counts{};
  for (const auto& [name, replica] : keeper_.replicas()) {
    ++counts.at(static_cast<size_t>(replica.row.replica.role))
          .at(static_cast<size_t>(replica.row.state));
  }
  for (const job::Role role : job::kReplicaRoles) {
    for (size_t state = 0; state < kStates; ++state) {
      const int64_t count = counts.at(static_cast<size_t>(role)).at(state);
      const std::string name = fmt::format("replicas.{}.{}", job::NameOf(role),
                                           job::NameOf(static_cast<job::ReplicaState>(state)));
      // Few roles have replicas in all states, and the number of series is limited.
      if (count > 0 || store_.IsDefined(name)) Add(name, "replicas", Number(count));
    }
  }
}

void Recorder::SampleServers() {
  if (!parameters_.enabled()) return;
  struct Measure {
    const char* name;
    const char* unit;
    double sum = 0;
  };
  std::array<Measure, 4> measures = {{{"rows", "rows"},
                                      {"bytes", "bytes"},
                                      {"rows_pulled_per_s", "rows/s"},
                                      {"rows_pushed_per_s", "rows/s"}}};
  bool any = false;
  for (const job::ServerView& server : parameters_.View(now_)) {
    if (server.incarnation == job::PsIncarnation()) continue;  // it has not reported yet
    any = true;
    const std::array<double, 4> values = {Number(server.rows), Number(server.bytes),
                                          server.rows_pulled_per_s, server.rows_pushed_per_s};
    for (size_t i = 0; i < values.size(); ++i) {
      measures.at(i).sum += values.at(i);
      if (static_cast<size_t>(server.index) >= kMostServers) continue;
      Add(fmt::format("ps.{}.{}", server.index, measures.at(i).name), measures.at(i).unit,
          values.at(i));
    }
  }
  if (!any) return;
  for (const Measure& measure : measures) {
    Add(fmt::format("ps.{}", measure.name), measure.unit, measure.sum);
  }
}

void Recorder::SampleProcess(double passed) {
  const std::optional<ProcessUse> use = read_use_ ? read_use_() : std::nullopt;
  if (!use) return;
  if (cpu_seconds_ && passed >= kShortestInterval) {
    Add("master.cpu", "cores", (use->cpu_seconds - *cpu_seconds_) / passed);
  }
  cpu_seconds_ = use->cpu_seconds;
  Add("master.memory", "bytes", Number(use->memory_bytes));
}

void Recorder::OnMetrics(int64_t step, const std::map<std::string, double>& metrics) {
  AddAll("program.", metrics, step);
}

// A master that was started again reads the logs from their beginning.
void Recorder::OnLogged(const ProgressLog::Logged& logged) {
  if (logged.evaluation) {
    if (logged.step > evaluated_before_) AddAll(kEvaluation, logged.values, logged.step);
    return;
  }
  if (logged.step > logged_before_) logged_before_ = -1;
  if (logged_before_ >= 0) return;
  std::map<std::string, double> values = logged.values;
  if (logged.step >= 0) values["step"] = Number(logged.step);
  AddAll(kLog, values, logged.step);
}

void Recorder::OnEvaluation(const job::EvaluationView& evaluation) {
  AddAll(kEvaluation, evaluation.metrics, evaluation.version);
}

void Recorder::Flush(bool ended) {
  if (flushed_end_ || (!ended && now_ - flushed_at_ < kFlushInterval)) return;
  flushed_at_ = now_;
  flushed_end_ = ended;
  if (ended && sampled_at_) {  // with the values at the end
    sampled_second_ = -1;
    Sample();
  }
  if (ended) store_.CloseSecond();
  telemetry::Stored changes = store_.TakeChanges();
  if (changes.empty()) return;
  if (std::exchange(damaged_, false)) ledger_.ClearTelemetry();
  ledger_.PutTelemetry(std::move(changes));
}

}  // namespace edl::master
