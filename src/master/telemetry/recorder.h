#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "telemetry/store.h"

#include "base/clock.h"
#include "base/process_use.h"
#include "job/job_view.h"
#include "master/ledger/ledger.h"
#include "master/parameters/parameter_keeper.h"
#include "master/progress_log.h"
#include "master/replicas/replica_keeper.h"
#include "master/shards/dispatcher.h"

namespace edl::master {

// Records the series of docs/telemetry.md: samples the state of the job once a second, and takes
// what programs report. The ledger keeps them over restarts of the master. They are only shown to
// users: no error here is an error of the job.
//
// Confined: call it on the master's loop.
class Recorder {
 public:
  // A loss of the master loses at most so much of the newest points.
  static constexpr std::chrono::seconds kFlushInterval{2};
  // Further parameter servers are only part of the sums.
  static constexpr size_t kMostServers = 16;

  // All outlive it.
  Recorder(Ledger& ledger, const Dispatcher& dispatcher, const ReplicaKeeper& keeper,
           const ParameterKeeper& parameters)
      : ledger_(ledger), dispatcher_(dispatcher), keeper_(keeper), parameters_(parameters) {}

  // Continues the series of the ledger, or begins with none if they are damaged. Call it once.
  void Load(Time now, WallTime wall_now);
  // How to read what the master's process uses. Without it, these series are absent.
  void set_process_use(std::function<std::optional<ProcessUse>()> read) {
    read_use_ = std::move(read);
  }

  // Sets the time of all that follows.
  void Advance(Time now, WallTime wall_now);
  // Samples the state of the job, unless it has done so in this second. Costs O(replicas).
  void Sample();
  // A program reported metrics.
  void OnMetrics(int64_t step, const std::map<std::string, double>& metrics);
  // TensorFlow logged this.
  void OnLogged(const ProgressLog::Logged& logged);
  // An evaluation of a job with a model ended.
  void OnEvaluation(const job::EvaluationView& evaluation);

  // Makes what is new part of the next commit, at most each kFlushInterval, or all of it if the job
  // has `ended`.
  void Flush(bool ended);

  const telemetry::Store& store() const { return store_; }

 private:
  void Add(std::string_view name, std::string_view unit, double value, int64_t step = -1);
  void AddAll(std::string_view prefix, const std::map<std::string, double>& values, int64_t step);
  void SampleShards(double passed);
  void SampleReplicas();
  void SampleServers();
  void SampleProcess(double passed);

  Ledger& ledger_;
  const Dispatcher& dispatcher_;
  const ReplicaKeeper& keeper_;
  const ParameterKeeper& parameters_;
  std::function<std::optional<ProcessUse>()> read_use_;
  telemetry::Store store_;
  bool damaged_ = false;  // what the ledger has must be deleted
  Time now_;
  std::optional<Time> sampled_at_;
  int64_t sampled_second_ = -1;
  std::optional<int64_t> records_done_;  // at the last sample
  std::optional<double> cpu_seconds_;    // at the last sample
  Time flushed_at_;
  bool flushed_end_ = false;
  // The highest steps that earlier processes of the master have read from the same logs.
  int64_t logged_before_ = -1;
  int64_t evaluated_before_ = -1;
};

}  // namespace edl::master
