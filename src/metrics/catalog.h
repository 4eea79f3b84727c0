#pragma once

#include <array>
#include <span>
#include <string_view>

#include "metrics/metric.h"

// Every metric that a process of ours exports. docs/metrics.md, deploy/grafana and
// deploy/prometheus are made from this table.
namespace edl::metrics {

// --- every process: the names that Prometheus' own client libraries use ---

inline constexpr Metric kProcessCpu{"process_cpu_seconds_total", Type::kCounter,
                                    "Processor time of the process."};
inline constexpr Metric kProcessResident{"process_resident_memory_bytes", Type::kGauge,
                                         "Resident memory of the process."};
inline constexpr Metric kProcessVirtual{"process_virtual_memory_bytes", Type::kGauge,
                                        "Virtual memory of the process."};
inline constexpr Metric kProcessStart{"process_start_time_seconds", Type::kGauge,
                                      "Start of the process, in seconds since 1970."};
inline constexpr Metric kProcessFds{"process_open_fds", Type::kGauge,
                                    "Open file descriptors of the process."};
inline constexpr Metric kProcessMostFds{"process_max_fds", Type::kGauge,
                                        "Limit of file descriptors of the process."};
inline constexpr Metric kProcessMemoryLimit{
    "elasticdl_process_memory_limit_bytes", Type::kGauge,
    "Memory limit of the control group of the process. Absent if there is none."};

inline constexpr std::array kProcessMetrics = {
    &kProcessCpu, &kProcessResident, &kProcessVirtual,    &kProcessStart,
    &kProcessFds, &kProcessMostFds,  &kProcessMemoryLimit};

// --- the master of a job ---

inline constexpr Metric kJobInfo{"elasticdl_job_info", Type::kInfo,
                                 "The version of ElasticDL that runs the job.", "version"};
inline constexpr Metric kJobState{"elasticdl_job_state", Type::kGauge,
                                  "1 for the state that the job is in, 0 for the others.", "state"};
inline constexpr Metric kJobStart{"elasticdl_job_start_timestamp_seconds", Type::kGauge,
                                  "When the job started, in seconds since 1970."};
inline constexpr Metric kJobRun{"elasticdl_job_run_seconds_total", Type::kCounter,
                                "How long the job has run."};
inline constexpr Metric kJobBatches{
    "elasticdl_job_batches_total", Type::kCounter,
    "Distinct batches that were completed: the version of the job."};
inline constexpr Metric kMasterStarts{"elasticdl_master_starts_total", Type::kCounter,
                                      "Starts of the master, the first one included."};
inline constexpr Metric kMasterPaused{
    "elasticdl_master_paused", Type::kGauge,
    "1 while the master answers no calls because the ledger cannot be written."};
inline constexpr Metric kReplicas{"elasticdl_replicas", Type::kGauge,
                                  "Replicas that are pending or running.", "role state"};
inline constexpr Metric kRelaunches{
    "elasticdl_replica_relaunches_total", Type::kCounter,
    "Replicas that were launched because their predecessor in the slot had exited."};
inline constexpr Metric kSessions{"elasticdl_sessions", Type::kGauge,
                                  "Processes that have joined the job."};
inline constexpr Metric kCallsWaiting{"elasticdl_calls_waiting", Type::kGauge,
                                      "Calls of workers that wait for a shard."};
inline constexpr Metric kRounds{"elasticdl_master_round_seconds", Type::kHistogram,
                                "Duration of a round of the master's loop, commit included."};
inline constexpr Metric kCommits{"elasticdl_master_commit_seconds", Type::kHistogram,
                                 "Duration of a commit to the ledger."};

inline constexpr std::string_view kDatasetLabels = "dataset task_type";
inline constexpr Metric kDatasetRecords{
    "elasticdl_dataset_records", Type::kGauge,
    "Records of all epochs of a dataset. Absent for a dataset without end.", kDatasetLabels};
inline constexpr Metric kDatasetRecordsDone{"elasticdl_dataset_records_done_total", Type::kCounter,
                                            "Records that were completed, over all epochs.",
                                            kDatasetLabels};
inline constexpr Metric kDatasetRecordsNotTrained{
    "elasticdl_dataset_records_not_trained", Type::kGauge,
    "Records of shards that were not completed when the programs ended.", kDatasetLabels};
inline constexpr Metric kDatasetEpoch{"elasticdl_dataset_epoch", Type::kGauge,
                                      "The epoch that is being leased, from 0.", kDatasetLabels};
inline constexpr Metric kDatasetShardsDone{"elasticdl_dataset_shards_done_total", Type::kCounter,
                                           "Shards that were completed, over all epochs.",
                                           kDatasetLabels};
inline constexpr Metric kDatasetShardsLeased{"elasticdl_dataset_shards_leased", Type::kGauge,
                                             "Shards that are leased now.", kDatasetLabels};
inline constexpr Metric kDatasetShardsRepeated{
    "elasticdl_dataset_shards_repeated_total", Type::kCounter,
    "Shards that were leased again after a failure or a loss.", kDatasetLabels};
inline constexpr Metric kDatasetShardsQuarantined{
    "elasticdl_dataset_shards_quarantined", Type::kGauge,
    "Shards that failed too often and are not leased any more.", kDatasetLabels};

inline constexpr Metric kProgramMetric{
    "elasticdl_program_metric", Type::kGauge,
    "The last value of a metric that the program reported or logged, such as the loss.", "metric"};
inline constexpr Metric kEvaluationMetric{"elasticdl_evaluation_metric", Type::kGauge,
                                          "A metric of the last evaluation of the model.",
                                          "metric"};
inline constexpr Metric kPsUp{"elasticdl_ps_up", Type::kGauge,
                              "1 if the parameter server serves, according to the master.",
                              "index"};
inline constexpr Metric kCheckpointTime{
    "elasticdl_checkpoint_timestamp_seconds", Type::kGauge,
    "When the newest checkpoint was completed, in seconds since 1970. Absent if this process of "
    "the master has not seen one."};
inline constexpr Metric kCheckpointsDamaged{"elasticdl_checkpoints_damaged", Type::kGauge,
                                            "Checkpoints that could not be read."};

inline constexpr std::array kMasterMetrics = {&kJobInfo,
                                              &kJobState,
                                              &kJobStart,
                                              &kJobRun,
                                              &kJobBatches,
                                              &kMasterStarts,
                                              &kMasterPaused,
                                              &kReplicas,
                                              &kRelaunches,
                                              &kSessions,
                                              &kCallsWaiting,
                                              &kRounds,
                                              &kCommits,
                                              &kDatasetRecords,
                                              &kDatasetRecordsDone,
                                              &kDatasetRecordsNotTrained,
                                              &kDatasetEpoch,
                                              &kDatasetShardsDone,
                                              &kDatasetShardsLeased,
                                              &kDatasetShardsRepeated,
                                              &kDatasetShardsQuarantined,
                                              &kProgramMetric,
                                              &kEvaluationMetric,
                                              &kPsUp,
                                              &kCheckpointTime,
                                              &kCheckpointsDamaged};

// --- a parameter server, by lane ---

inline constexpr Metric kPsInfo{"elasticdl_ps_info", Type::kInfo,
                                "The version of ElasticDL that the parameter server runs.",
                                "version"};
inline constexpr Metric kPsRows{"elasticdl_ps_rows", Type::kGauge, "Rows of all tables.", "lane"};
inline constexpr Metric kPsMemory{"elasticdl_ps_memory_bytes", Type::kGauge,
                                  "Memory of rows, their index and dense blocks.", "lane"};
inline constexpr Metric kPsEvicted{"elasticdl_ps_evicted_rows_total", Type::kCounter,
                                   "Rows that were evicted because of the bounds of their tables.",
                                   "lane"};
inline constexpr Metric kPsConnections{"elasticdl_ps_connections", Type::kGauge,
                                       "Open connections of workers.", "lane"};
inline constexpr Metric kPsRequestsWaiting{
    "elasticdl_ps_requests_waiting", Type::kGauge,
    "Requests that wait until the master lets the server serve, or until a save has room in its "
    "buffer.",
    "lane"};
inline constexpr Metric kPsAnswersWaiting{"elasticdl_ps_answers_waiting_bytes", Type::kGauge,
                                          "Answers that workers have not received yet.", "lane"};
inline constexpr Metric kPsSteps{
    "elasticdl_ps_steps_total", Type::kCounter,
    "Optimizer steps: pushes, or synchronous rounds, since the start or the last restore.", "lane"};
inline constexpr Metric kPsLeastGradients{
    "elasticdl_ps_least_gradients_total", Type::kCounter,
    "Gradients in synchronous rounds: those of the bucket with the fewest.", "lane"};
inline constexpr Metric kPsMostGradients{
    "elasticdl_ps_most_gradients_total", Type::kCounter,
    "Gradients in synchronous rounds: those of the bucket with the most.", "lane"};
inline constexpr Metric kPsPulls{"elasticdl_ps_pulls_total", Type::kCounter,
                                 "Pulls that were answered.", "lane"};
inline constexpr Metric kPsPushes{"elasticdl_ps_pushes_total", Type::kCounter,
                                  "Pushes that were answered.", "lane"};
inline constexpr Metric kPsRowsPulled{"elasticdl_ps_rows_pulled_total", Type::kCounter,
                                      "Rows in the pulls that were answered.", "lane"};
inline constexpr Metric kPsRowsPushed{"elasticdl_ps_rows_pushed_total", Type::kCounter,
                                      "Rows in the pushes that were answered.", "lane"};
inline constexpr Metric kPsRefusals{"elasticdl_ps_refused_requests_total", Type::kCounter,
                                    "Requests that were answered with an error.", "lane"};
inline constexpr Metric kPsRefusedBatches{
    "elasticdl_ps_refused_batches_total", Type::kCounter,
    "Batches that were counted but not applied, because their gradients were non-finite.", "lane"};
inline constexpr Metric kPsWaitsForSaves{
    "elasticdl_ps_waits_for_saves_total", Type::kCounter,
    "Times that a push had to wait for room in the buffer of a save.", "lane"};
inline constexpr Metric kPsPullTime{"elasticdl_ps_pull_seconds", Type::kHistogram,
                                    "Time that a lane needed for a pull.", "lane"};
inline constexpr Metric kPsPushTime{"elasticdl_ps_push_seconds", Type::kHistogram,
                                    "Time that a lane needed for a push.", "lane"};

inline constexpr std::array kPsMetrics = {
    &kPsInfo,           &kPsRows,          &kPsMemory,
    &kPsEvicted,        &kPsConnections,   &kPsRequestsWaiting,
    &kPsAnswersWaiting, &kPsSteps,         &kPsLeastGradients,
    &kPsMostGradients,  &kPsPulls,         &kPsPushes,
    &kPsRowsPulled,     &kPsRowsPushed,    &kPsRefusals,
    &kPsRefusedBatches, &kPsWaitsForSaves, &kPsPullTime,
    &kPsPushTime};

// --- the operator, with the names of Kubeflow's operator and of controller-runtime ---

inline constexpr std::string_view kJobCountLabels = "framework job_namespace";
inline constexpr Metric kJobsCreated{"training_operator_jobs_created_total", Type::kCounter,
                                     "TFJobs that were created.", kJobCountLabels};
inline constexpr Metric kJobsDeleted{"training_operator_jobs_deleted_total", Type::kCounter,
                                     "TFJobs that were deleted after their time to live.",
                                     kJobCountLabels};
inline constexpr Metric kJobsSuccessful{"training_operator_jobs_successful_total", Type::kCounter,
                                        "TFJobs that succeeded.", kJobCountLabels};
inline constexpr Metric kJobsFailed{"training_operator_jobs_failed_total", Type::kCounter,
                                    "TFJobs that failed.", kJobCountLabels};
inline constexpr Metric kJobsRestarted{"training_operator_jobs_restarted_total", Type::kCounter,
                                       "Restarts of replicas of TFJobs.", kJobCountLabels};
inline constexpr Metric kReconciles{"controller_runtime_reconcile_total", Type::kCounter,
                                    "Reconciliations of TFJobs, by result.", "controller result"};
inline constexpr Metric kReconcileErrors{"controller_runtime_reconcile_errors_total",
                                         Type::kCounter, "Reconciliations of TFJobs that failed.",
                                         "controller"};
inline constexpr Metric kReconcileTime{"controller_runtime_reconcile_time_seconds",
                                       Type::kHistogram,
                                       "Duration of the reconciliation of a TFJob.", "controller"};
inline constexpr Metric kActiveWorkers{"controller_runtime_active_workers", Type::kGauge,
                                       "TFJobs that are being reconciled.", "controller"};
inline constexpr Metric kQueueDepth{"workqueue_depth", Type::kGauge,
                                    "TFJobs that wait for reconciliation.", "name"};
inline constexpr Metric kQueueAdds{"workqueue_adds_total", Type::kCounter,
                                   "Times that a TFJob was queued.", "name"};
inline constexpr Metric kQueueRetries{"workqueue_retries_total", Type::kCounter,
                                      "Times that a TFJob was queued again.", "name"};
inline constexpr Metric kQueueWaits{"workqueue_queue_duration_seconds", Type::kHistogram,
                                    "How long a TFJob waited for reconciliation.", "name"};
inline constexpr Metric kQueueRuns{"workqueue_work_duration_seconds", Type::kHistogram,
                                   "How long the reconciliation of a TFJob took.", "name"};
inline constexpr Metric kQueueUnfinished{
    "workqueue_unfinished_work_seconds", Type::kGauge,
    "How long the reconciliations that have not ended have taken so far, together.", "name"};
inline constexpr Metric kQueueLongest{
    "workqueue_longest_running_processor_seconds", Type::kGauge,
    "How long the longest reconciliation that has not ended has taken so far.", "name"};
inline constexpr Metric kMostWorkers{"controller_runtime_max_concurrent_reconciles", Type::kGauge,
                                     "Limit of TFJobs that are reconciled at the same time.",
                                     "controller"};
inline constexpr Metric kTfJobs{"elasticdl_operator_jobs", Type::kGauge, "TFJobs in the cluster."};
inline constexpr Metric kLeader{"leader_election_master_status", Type::kGauge,
                                "1 if this process holds the lease.", "name"};

inline constexpr std::array kOperatorMetrics = {
    &kJobsCreated,  &kJobsDeleted,     &kJobsSuccessful, &kJobsFailed,    &kJobsRestarted,
    &kReconciles,   &kReconcileErrors, &kReconcileTime,  &kActiveWorkers, &kQueueDepth,
    &kQueueAdds,    &kQueueRetries,    &kQueueWaits,     &kQueueRuns,     &kQueueUnfinished,
    &kQueueLongest, &kMostWorkers,     &kTfJobs,         &kLeader};

// The processes that export metrics.
struct Source {
  std::string_view name;    // "master"
  std::string_view title;   // of a chapter
  std::string_view labels;  // of the process, part of every sample of it; separated by spaces
  std::span<const Metric* const> metrics;
};
std::span<const Source> Sources();

// Null: no source has a metric of this name. The names _bucket, _sum and _count of a histogram are
// names of the histogram.
const Metric* FindMetric(std::string_view name);

}  // namespace edl::metrics
