#include "master/service/compat_service.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "compat/elasticai_api.grpc.pb.h"
#include <grpcpp/grpcpp.h>

#include "base/log.h"
#include "master/service/call.h"
#include "master/service/compat_admission.h"

namespace edl::master {
namespace {

using google::protobuf::Empty;

namespace pb = ::proto;

pb::TaskType ToProto(TaskType type) {
  switch (type) {
    case TaskType::kEvaluation:
      return pb::EVALUATION;
    case TaskType::kPrediction:
      return pb::PREDICTION;
    case TaskType::kTraining:
    case TaskType::kEvaluationMerge:  // these two are only in jobs without the compatibility API
    case TaskType::kExport:
      break;
  }
  return pb::TRAINING;
}

// The published wire has more types; all of them are treated as training.
TaskType FromProto(pb::TaskType type) {
  if (type == pb::EVALUATION) return TaskType::kEvaluation;
  if (type == pb::PREDICTION) return TaskType::kPrediction;
  return TaskType::kTraining;
}

std::string DatasetOr(const std::string& name, pb::TaskType type) {
  if (!name.empty()) return name;
  return type == pb::EVALUATION ? CompatApi::kEvaluationData : CompatApi::kTrainingData;
}

// The version for clients, which store it in 32 bits.
int32_t Clip(int64_t version) {
  return static_cast<int32_t>(std::min<int64_t>(version, std::numeric_limits<int32_t>::max()));
}

void ToProto(const LeasedShard& shard, int64_t version, pb::Task* out) {
  out->set_task_id(shard.task);
  out->set_type(ToProto(shard.task_type));
  out->set_model_version(Clip(version));
  pb::Shard* range = out->mutable_shard();
  range->set_name(shard.dataset);
  range->set_start(shard.start);
  range->set_end(shard.end);
  range->mutable_indices()->Add(shard.indices.begin(), shard.indices.end());
}

template <typename Request>
DatasetSpec SpecOf(const Request& in, std::string name) {
  DatasetSpec spec{.name = std::move(name),
                   .size = in.dataset_size(),
                   .batch_size = in.batch_size(),
                   .batches_per_shard = in.num_minibatches_per_shard(),
                   .epochs = in.num_epochs()};
  if (in.shuffle_shards()) spec.order = Order::kShuffleShards;
  if (in.shuffle()) spec.order = Order::kShuffleRecords;
  return spec;
}

Rendezvous::Process ProcessOf(const std::string& host, int32_t local_id) {
  return {host, local_id};
}

std::string VersionKey(const std::string& version_type, const std::string& task_type,
                       int32_t task_id) {
  // GLOBAL versions belong to the cluster, the others to one task.
  return version_type == "GLOBAL" ? version_type
                                  : fmt::format("{}/{}/{}", version_type, task_type, task_id);
}

// --- data ---

void Fetch(Core& core, Call& call, ReplicaRef replica, const std::string& dataset, pb::Task* out) {
  const uint64_t id = call.id();
  call.set_on_disconnect([&call, id, replica](Core& core) {
    if (core.compat_api().FetchCut(id, replica, std::nullopt))
      call.Answer(Cancelled("the client disconnected"));
  });
  core.compat_api().Fetch(
      id, replica, dataset,
      [&core, &call, id, replica, out](const Result<std::optional<LeasedShard>>& shard) {
        if (shard.ok() && shard->has_value()) {
          ToProto(**shard, core.dispatcher().counters().version, out);
          call.set_on_lost([id, replica, lease = (*shard)->lease](Core& core) {
            core.compat_api().FetchCut(id, replica, lease);
          });
        }
        call.Answer(shard.status());
      });
}

void GetDatasetTask(Core& core, Call& call, const pb::GetDatasetTaskRequest& in, pb::Task* out) {
  Fetch(core, call, CompatApi::ReplicaOf(in.worker_id(), in.worker_type()),
        DatasetOr(in.dataset_name(), pb::TRAINING), out);
}

void GetTask(Core& core, Call& call, const pb::GetTaskRequest& in, pb::Task* out) {
  Fetch(core, call, CompatApi::ReplicaOf(in.worker_id(), ""),
        DatasetOr(in.dataset_name(), in.task_type()), out);
}

void ReportDatasetTaskResult(Core& core, Call& call, const pb::ReportDatasetTaskResultRequest& in,
                             Empty*) {
  core.compat_api().ReportTask(DatasetOr(in.dataset_name(), pb::TRAINING), in.task_id(),
                               in.err_message());
  AnswerLater(core, call);
}

void ReportTaskResult(Core& core, Call& call, const pb::ReportTaskResultRequest& in, Empty*) {
  // The oldest published version sends no dataset. Task ids are unique over all datasets.
  const std::string& name = in.dataset_name();
  for (const char* dataset : {CompatApi::kTrainingData, CompatApi::kEvaluationData}) {
    core.compat_api().ReportTask(name.empty() ? dataset : name, in.task_id(), in.err_message());
  }
  AnswerLater(core, call);
}

void ReportDatasetShardParams(Core& core, Call& call, const pb::ReportDatasetShardParamsRequest& in,
                              Empty*) {
  DatasetSpec spec = SpecOf(in, DatasetOr(in.dataset_name(), in.task_type()));
  spec.task_type = FromProto(in.task_type());
  AnswerLater(core, call, core.Register(std::move(spec)).status());
}

void ReportTrainingParams(Core& core, Call& call, const pb::ReportTrainingParamsRequest& in,
                          Empty*) {
  AnswerLater(core, call, core.Register(SpecOf(in, CompatApi::kTrainingData)).status());
}

void ResetDataset(Core& core, Call& call, const pb::ResetDatasetRequest& in, Empty*) {
  // After an error these clients retry for 150 s and then exit, so resetting an unknown dataset is
  // not an error.
  const auto done = core.Reset(DatasetOr(in.dataset_name(), pb::TRAINING));
  AnswerLater(core, call, done.status().code() == Code::kNotFound ? Ok() : done.status());
}

void GetDatasetEpoch(Core& core, Call& call, const pb::GetDatasetEpochRequest& in,
                     pb::GetDatasetEpochResponse* out) {
  const Dataset* dataset = core.dispatcher().Find(DatasetOr(in.dataset_name(), pb::TRAINING));
  if (dataset != nullptr) out->set_epoch(static_cast<int32_t>(dataset->View().epoch));
  call.Answer(Ok());
}

void GetShardCheckpoint(Core& core, Call& call, const pb::GetShardCheckpointRequest& in,
                        pb::ShardCheckpoint* out) {
  auto content = core.dispatcher().Save(DatasetOr(in.dataset_name(), pb::TRAINING));
  if (content.ok()) out->set_content(std::move(*content));
  AnswerLater(core, call);
}

void ReportShardCheckpoint(Core& core, Call& call, const pb::ShardCheckpoint& in,
                           pb::ReportShardCheckpointResponse* out) {
  const auto restored = core.Restore(in.content());
  if (!restored.ok())
    LOG_WARNING("cannot restore a shard checkpoint: {}", restored.status().message());
  out->set_success(restored.ok());
  AnswerLater(core, call);
}

// --- barriers, locks ---

void WorkerSync(Core& core, Call& call, const pb::WorkerSyncRequest& in,
                pb::WorkerSyncResponse* out) {
  core.compat_api().WorkerSync(in.sync_name(), CompatApi::ReplicaOf(in.worker_id(), ""),
                               [out, &call](const Result<bool>& ready) {
                                 out->set_ready(ready.ok() && *ready);
                                 call.Answer(ready.status());
                               });
}

void WaitWorkerSync(Core& core, Call& call, const pb::WaitWorkerSyncRequest& in,
                    pb::WorkerSyncResponse* out) {
  if (in.notify()) {
    core.compat_api().Notify(in.sync_name());
    out->set_ready(true);
    AnswerLater(core, call);
    return;
  }
  core.compat_api().WaitWorkerSync(in.sync_name(), [out, &call](const Result<bool>& ready) {
    out->set_ready(ready.ok() && *ready);
    call.Answer(ready.status());
  });
}

void DeleteWorkerSync(Core& core, Call& call, const pb::DeleteWorkerSyncRequest& in, Empty*) {
  core.DeleteSync(in.delete_all() ? std::nullopt : std::optional(in.sync_name()), /*request_id=*/0);
  AnswerLater(core, call);
}

void AcquireRemoteLock(Core& core, Call& call, const pb::AcquireRemoteLockRequest& in,
                       pb::AcquireRemoteLockResponse* out) {
  core.compat_api().AcquireLock(in.name(), CompatApi::ReplicaOf(in.worker_id(), ""), in.timeout(),
                                [out, &call](const Result<bool>& acquired) {
                                  out->set_success(acquired.ok() && *acquired);
                                  call.Answer(acquired.status());
                                });
}

void ReleaseRemoteLock(Core& core, Call& call, const pb::ReleaseRemoteLockRequest& in, Empty*) {
  core.compat_api().ReleaseLock(in.name());
  AnswerLater(core, call);
}

// --- rendezvous ---

void ReportTrainingLoopStatus(Core& core, Call& call, const pb::ReportTrainingLoopStatusRequest& in,
                              Empty*) {
  constexpr int kStart = 1;
  constexpr int kEnd = 2;
  const auto process = ProcessOf(in.worker_host(), in.worker_local_process_id());
  if (in.status() == kStart) core.compat_api().rendezvous().Start(process, in.ddp_server_port());
  if (in.status() == kEnd) core.compat_api().rendezvous().End(process);
  AnswerLater(core, call);
}

void GetCommRank(Core& core, Call& call, const pb::GetCommRankRequest& in,
                 pb::GetCommRankResponse* out) {
  const Rendezvous::Rank rank = core.compat_api().rendezvous().RankOf(
      ProcessOf(in.worker_host(), in.worker_local_process_id()));
  out->set_rank_id(rank.rank);
  out->set_world_size(rank.size);
  out->set_rendezvous_id(rank.number);
  out->set_rendezvous_port(rank.port);
  out->set_local_rank(rank.local_rank);
  out->set_local_size(rank.local_size);
  out->set_cross_rank(rank.cross_rank);
  out->set_cross_size(rank.cross_size);
  out->set_master_port(rank.port);
  out->set_master_addr(rank.address);
  AnswerLater(core, call);
}

void ResetSync(Core& core, Call& call, const pb::DdpResetSyncRequest& in,
               pb::DdpResetSyncResponse* out) {
  out->set_reset(core.compat_api().rendezvous().ResetSync(
      ProcessOf(in.worker_host(), in.worker_local_process_id()), in.rendezvous_id()));
  call.Answer(Ok());
}

void BarrierSync(Core& core, Call& call, const pb::DdpInitSyncRequest& in,
                 pb::DdpInitSyncResponse* out) {
  out->set_reset(core.compat_api().rendezvous().BarrierSync(
      ProcessOf(in.worker_host(), in.worker_local_process_id()), in.rendezvous_id()));
  call.Answer(Ok());
}

void ReportPrestop(Core& core, Call& call, const pb::ReportPreStopRequest& in, Empty*) {
  core.compat_api().rendezvous().HostGone(in.worker_host());
  AnswerLater(core, call);
}

// --- state of the job ---

void QueryRunningNodes(Core& core, Call& call, const Empty&, pb::RunningNodes* out) {
  for (const Member& member : core.master_api().CurrentMembership().members) {
    out->add_nodes()->set_type(std::string(job::NameOf(member.role)));
  }
  call.Answer(Ok());
}

void QueryTrainingStatus(Core& core, Call& call, const Empty&,
                         pb::QueryTrainingStatusResponse* out) {
  constexpr int kStarted = 1;
  out->set_status(core.dispatcher().counters().version > 0 ? kStarted : 0);
  call.Answer(Ok());
}

void ReportGlobalStep(Core& core, Call& call, const pb::GlobalStepRecord& in, Empty*) {
  core.OnMetrics(in.global_step(), {});
  call.Answer(Ok());
}

void GetClusterVersion(Core& core, Call& call, const pb::GetClusterVersionRequest& in,
                       pb::GetClusterVersionResponse* out) {
  out->set_version(core.compat_api().ClusterVersion(
      VersionKey(in.version_type(), in.task_type(), in.task_id())));
  call.Answer(Ok());
}

void UpdateClusterVersion(Core& core, Call& call, const pb::UpdateClusterVersionRequest& in,
                          Empty*) {
  core.compat_api().SetClusterVersion(VersionKey(in.version_type(), in.task_type(), in.task_id()),
                                      in.version());
  call.Answer(Ok());
}

}  // namespace

void AddCompatServices(const job::JobSpec& job, bool on_this_machine, Methods& methods) {
  const Admit admit = [admission = std::make_shared<CompatAdmission>(job, on_this_machine)](
                          const Core& core, const grpc::ServerContext& context) {
    return admission->Check(core, context.peer());
  };
  Methods::Service service(methods, pb::Master::service_full_name(), admit);
  service.Add("get_dataset_task", GetDatasetTask);
  service.Add("get_task", GetTask);
  service.Add("report_dataset_task_result", ReportDatasetTaskResult);
  service.Add("report_task_result", ReportTaskResult);
  service.Add("report_dataset_shard_params", ReportDatasetShardParams);
  service.Add("report_training_params", ReportTrainingParams);
  service.Add("reset_dataset", ResetDataset);
  service.Add("get_dataset_epoch", GetDatasetEpoch);
  service.Add("get_shard_checkpoint", GetShardCheckpoint);
  service.Add("report_shard_checkpoint", ReportShardCheckpoint);
  service.Add("worker_sync", WorkerSync);
  service.Add("wait_worker_sync", WaitWorkerSync);
  service.Add("delete_worker_sync", DeleteWorkerSync);
  service.Add("acquire_remote_lock", AcquireRemoteLock);
  service.Add("release_remote_lock", ReleaseRemoteLock);
  service.Add("report_training_loop_status", ReportTrainingLoopStatus);
  service.Add("get_comm_rank", GetCommRank);
  service.Add("reset_sync", ResetSync);
  service.Add("barrier_sync", BarrierSync);
  service.Add("report_prestop", ReportPrestop);
  service.Add("query_running_nodes", QueryRunningNodes);
  service.Add("query_training_status", QueryTrainingStatus);
  service.Add("report_global_step", ReportGlobalStep);
  service.Add("get_cluster_version", GetClusterVersion);
  service.Add("update_cluster_version", UpdateClusterVersion);
  service.AddIgnored("query_relaunch_ps_pod");
  service.AddIgnored("ready_for_ps_relaunch");
  service.AddIgnored("update_critical_worker");
  service.AddIgnored("report_model_metric");
  service.AddIgnored("report_used_resource");
  service.AddIgnored("query_ps_nodes");
  service.AddIgnored("init_remote_lock");
  service.AddIgnored("report_autotune_status");
  service.AddIgnored("report_version");
  service.AddIgnored("report_evaluation_metrics");
  Methods::Service train_loop(methods, pb::TrainLoopMaster::service_full_name(), admit);
  train_loop.AddIgnored("report_evaluation_metrics");
  train_loop.AddIgnored("report_version");
}

}  // namespace edl::master
