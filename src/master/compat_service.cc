#include "master/compat_service.h"

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
#include "master/call.h"

namespace edl::master {
namespace {

using google::protobuf::Empty;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

namespace pb = ::proto;

bool IsLoopback(std::string_view peer) {
  return peer.starts_with("ipv4:127.") || peer.starts_with("ipv6:%5B::1%5D") ||
         peer.starts_with("ipv6:[::1]") || peer.starts_with("unix:");
}

pb::TaskType TaskTypeOf(const std::string& name) {
  if (name == "evaluation") return pb::EVALUATION;
  if (name == "prediction") return pb::PREDICTION;
  return pb::TRAINING;
}

std::string NameOf(pb::TaskType type) {
  if (type == pb::EVALUATION) return "evaluation";
  if (type == pb::PREDICTION) return "prediction";
  return "training";
}

std::string DatasetOr(const std::string& name, pb::TaskType type) {
  if (!name.empty()) return name;
  return type == pb::EVALUATION ? OldDoor::kEvaluationData : OldDoor::kTrainingData;
}

// The version that the clients may log; they keep it in 32 bits.
int32_t Clip(int64_t version) {
  return static_cast<int32_t>(std::min<int64_t>(version, std::numeric_limits<int32_t>::max()));
}

void ToProto(const LeasedShard& shard, int64_t version, pb::Task* out) {
  out->set_task_id(shard.task);
  out->set_type(TaskTypeOf(shard.task_type));
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

World::Process ProcessOf(const std::string& host, int32_t local_id) { return {host, local_id}; }

// Answers once what was decided is durable.
void Later(Core& core, const AnswerCall& answer, const Status& status = Ok()) {
  core.outbox().Add([answer, status] { answer(status); });
}

class CompatService final : public pb::Master::CallbackService {
 public:
  CompatService(Loop& loop, const job::JobSpec& job) : loop_(loop), job_(job) {}

  // --- data ---

  ServerUnaryReactor* get_dataset_task(CallbackServerContext* context,
                                       const pb::GetDatasetTaskRequest* in,
                                       pb::Task* out) override {
    return Fetch(context, OldDoor::ReplicaOf(in->worker_id(), in->worker_type()),
                 DatasetOr(in->dataset_name(), pb::TRAINING), out);
  }

  ServerUnaryReactor* get_task(CallbackServerContext* context, const pb::GetTaskRequest* in,
                               pb::Task* out) override {
    return Fetch(context, OldDoor::ReplicaOf(in->worker_id(), ""),
                 DatasetOr(in->dataset_name(), in->task_type()), out);
  }

  ServerUnaryReactor* report_dataset_task_result(CallbackServerContext* context,
                                                 const pb::ReportDatasetTaskResultRequest* in,
                                                 Empty*) override {
    return Serve(context, [in](Core& core, const AnswerCall& answer) {
      core.old_door().ReportTask(DatasetOr(in->dataset_name(), pb::TRAINING), in->task_id(),
                                 in->err_message());
      Later(core, answer);
    });
  }

  ServerUnaryReactor* report_task_result(CallbackServerContext* context,
                                         const pb::ReportTaskResultRequest* in, Empty*) override {
    return Serve(context, [in](Core& core, const AnswerCall& answer) {
      // The oldest line sends no dataset, and task ids are unique over all of them.
      const std::string& name = in->dataset_name();
      for (const char* dataset : {OldDoor::kTrainingData, OldDoor::kEvaluationData}) {
        core.old_door().ReportTask(name.empty() ? dataset : name, in->task_id(), in->err_message());
      }
      Later(core, answer);
    });
  }

  ServerUnaryReactor* report_dataset_shard_params(CallbackServerContext* context,
                                                  const pb::ReportDatasetShardParamsRequest* in,
                                                  Empty*) override {
    return Serve(context, [in](Core& core, const AnswerCall& answer) {
      DatasetSpec spec = SpecOf(*in, DatasetOr(in->dataset_name(), in->task_type()));
      spec.task_type = NameOf(in->task_type());
      Later(core, answer, core.Register(std::move(spec)).status());
    });
  }

  ServerUnaryReactor* report_training_params(CallbackServerContext* context,
                                             const pb::ReportTrainingParamsRequest* in,
                                             Empty*) override {
    return Serve(context, [in](Core& core, const AnswerCall& answer) {
      Later(core, answer, core.Register(SpecOf(*in, OldDoor::kTrainingData)).status());
    });
  }

  ServerUnaryReactor* reset_dataset(CallbackServerContext* context,
                                    const pb::ResetDatasetRequest* in, Empty*) override {
    return Serve(context, [in](Core& core, const AnswerCall& answer) {
      // An error costs these clients 150 s and then their life; a reset of nothing is no error.
      const auto done = core.Reset(DatasetOr(in->dataset_name(), pb::TRAINING));
      Later(core, answer, done.status().code() == Code::kNotFound ? Ok() : done.status());
    });
  }

  ServerUnaryReactor* get_dataset_epoch(CallbackServerContext* context,
                                        const pb::GetDatasetEpochRequest* in,
                                        pb::GetDatasetEpochResponse* out) override {
    return Serve(context, [in, out](Core& core, const AnswerCall& answer) {
      const Dataset* dataset = core.dispatcher().Find(DatasetOr(in->dataset_name(), pb::TRAINING));
      if (dataset != nullptr) out->set_epoch(static_cast<int32_t>(dataset->View().epoch));
      answer(Ok());
    });
  }

  ServerUnaryReactor* get_shard_checkpoint(CallbackServerContext* context,
                                           const pb::GetShardCheckpointRequest* in,
                                           pb::ShardCheckpoint* out) override {
    return Serve(context, [in, out](Core& core, const AnswerCall& answer) {
      auto content = core.dispatcher().Save(DatasetOr(in->dataset_name(), pb::TRAINING));
      if (content.ok()) out->set_content(std::move(*content));
      Later(core, answer);
    });
  }

  ServerUnaryReactor* report_shard_checkpoint(CallbackServerContext* context,
                                              const pb::ShardCheckpoint* in,
                                              pb::ReportShardCheckpointResponse* out) override {
    return Serve(context, [in, out](Core& core, const AnswerCall& answer) {
      const auto restored = core.Restore(in->content());
      if (!restored.ok()) LOG_WARNING("restoring shards: {}", restored.status().message());
      out->set_success(restored.ok());
      Later(core, answer);
    });
  }

  // --- barriers, locks ---

  ServerUnaryReactor* worker_sync(CallbackServerContext* context, const pb::WorkerSyncRequest* in,
                                  pb::WorkerSyncResponse* out) override {
    return Serve(context, [in, out](Core& core, const AnswerCall& answer) {
      core.old_door().WorkerSync(in->sync_name(), OldDoor::ReplicaOf(in->worker_id(), ""),
                                 [out, answer](const Result<bool>& ready) {
                                   out->set_ready(ready.ok() && *ready);
                                   answer(ready.status());
                                 });
    });
  }

  ServerUnaryReactor* wait_worker_sync(CallbackServerContext* context,
                                       const pb::WaitWorkerSyncRequest* in,
                                       pb::WorkerSyncResponse* out) override {
    return Serve(context, [in, out](Core& core, const AnswerCall& answer) {
      if (in->notify()) {
        core.sync().Notify(in->sync_name());
        out->set_ready(true);
        Later(core, answer);
        return;
      }
      core.old_door().WaitWorkerSync(in->sync_name(), [out, answer](const Result<bool>& ready) {
        out->set_ready(ready.ok() && *ready);
        answer(ready.status());
      });
    });
  }

  ServerUnaryReactor* delete_worker_sync(CallbackServerContext* context,
                                         const pb::DeleteWorkerSyncRequest* in, Empty*) override {
    return Serve(context, [in](Core& core, const AnswerCall& answer) {
      if (in->delete_all()) {
        core.sync().DeleteAll();
      } else {
        core.sync().Delete(in->sync_name());
      }
      Later(core, answer);
    });
  }

  ServerUnaryReactor* acquire_remote_lock(CallbackServerContext* context,
                                          const pb::AcquireRemoteLockRequest* in,
                                          pb::AcquireRemoteLockResponse* out) override {
    return Serve(context, [in, out](Core& core, const AnswerCall& answer) {
      core.old_door().AcquireLock(in->name(), OldDoor::ReplicaOf(in->worker_id(), ""),
                                  in->timeout(), [out, answer](const Result<bool>& acquired) {
                                    out->set_success(acquired.ok() && *acquired);
                                    answer(acquired.status());
                                  });
    });
  }

  ServerUnaryReactor* release_remote_lock(CallbackServerContext* context,
                                          const pb::ReleaseRemoteLockRequest* in, Empty*) override {
    return Serve(context, [in](Core& core, const AnswerCall& answer) {
      core.sync().Release(in->name(), std::nullopt);
      Later(core, answer);
    });
  }

  // --- worlds ---

  ServerUnaryReactor* report_training_loop_status(CallbackServerContext* context,
                                                  const pb::ReportTrainingLoopStatusRequest* in,
                                                  Empty*) override {
    return Serve(context, [in](Core& core, const AnswerCall& answer) {
      constexpr int kStart = 1;
      constexpr int kEnd = 2;
      const auto process = ProcessOf(in->worker_host(), in->worker_local_process_id());
      if (in->status() == kStart) core.world().Start(process, in->ddp_server_port());
      if (in->status() == kEnd) core.world().End(process);
      Later(core, answer);
    });
  }

  ServerUnaryReactor* get_comm_rank(CallbackServerContext* context,
                                    const pb::GetCommRankRequest* in,
                                    pb::GetCommRankResponse* out) override {
    return Serve(context, [in, out](Core& core, const AnswerCall& answer) {
      const World::Rank rank =
          core.world().RankOf(ProcessOf(in->worker_host(), in->worker_local_process_id()));
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
      Later(core, answer);
    });
  }

  ServerUnaryReactor* reset_sync(CallbackServerContext* context, const pb::DdpResetSyncRequest* in,
                                 pb::DdpResetSyncResponse* out) override {
    return Serve(context, [in, out](Core& core, const AnswerCall& answer) {
      out->set_reset(core.world().ResetSync(
          ProcessOf(in->worker_host(), in->worker_local_process_id()), in->rendezvous_id()));
      answer(Ok());
    });
  }

  ServerUnaryReactor* barrier_sync(CallbackServerContext* context, const pb::DdpInitSyncRequest* in,
                                   pb::DdpInitSyncResponse* out) override {
    return Serve(context, [in, out](Core& core, const AnswerCall& answer) {
      out->set_reset(core.world().BarrierSync(
          ProcessOf(in->worker_host(), in->worker_local_process_id()), in->rendezvous_id()));
      answer(Ok());
    });
  }

  ServerUnaryReactor* report_prestop(CallbackServerContext* context,
                                     const pb::ReportPreStopRequest* in, Empty*) override {
    return Serve(context, [in](Core& core, const AnswerCall& answer) {
      core.world().HostGone(in->worker_host());
      Later(core, answer);
    });
  }

  // --- what the master knows ---

  ServerUnaryReactor* query_running_nodes(CallbackServerContext* context, const Empty*,
                                          pb::RunningNodes* out) override {
    return Serve(context, [out](Core& core, const AnswerCall& answer) {
      for (const Member& member : core.our_door().CurrentMembership().members) {
        out->add_nodes()->set_type(std::string(job::NameOf(member.role)));
      }
      answer(Ok());
    });
  }

  ServerUnaryReactor* query_training_status(CallbackServerContext* context, const Empty*,
                                            pb::QueryTrainingStatusResponse* out) override {
    return Serve(context, [out](Core& core, const AnswerCall& answer) {
      constexpr int kStarted = 1;
      out->set_status(core.dispatcher().counters().version > 0 ? kStarted : 0);
      answer(Ok());
    });
  }

  ServerUnaryReactor* report_global_step(CallbackServerContext* context,
                                         const pb::GlobalStepRecord* in, Empty*) override {
    return Serve(context, [in](Core& core, const AnswerCall& answer) {
      core.OnMetrics(in->global_step(), {});
      answer(Ok());
    });
  }

  ServerUnaryReactor* get_cluster_version(CallbackServerContext* context,
                                          const pb::GetClusterVersionRequest* in,
                                          pb::GetClusterVersionResponse* out) override {
    return Serve(context, [in, out](Core& core, const AnswerCall& answer) {
      out->set_version(core.old_door().ClusterVersion(
          VersionKey(in->version_type(), in->task_type(), in->task_id())));
      answer(Ok());
    });
  }

  ServerUnaryReactor* update_cluster_version(CallbackServerContext* context,
                                             const pb::UpdateClusterVersionRequest* in,
                                             Empty*) override {
    return Serve(context, [in](Core& core, const AnswerCall& answer) {
      core.old_door().SetClusterVersion(
          VersionKey(in->version_type(), in->task_type(), in->task_id()), in->version());
      answer(Ok());
    });
  }

  // --- accepted, of no consequence here ---

  ServerUnaryReactor* query_relaunch_ps_pod(CallbackServerContext* context, const Empty*,
                                            pb::QueryRelaunchPSPodResponse*) override {
    return Accept(context);
  }
  ServerUnaryReactor* ready_for_ps_relaunch(CallbackServerContext* context, const Empty*,
                                            Empty*) override {
    return Accept(context);
  }
  ServerUnaryReactor* update_critical_worker(CallbackServerContext* context,
                                             const pb::UpdateCriticalWorkerRequest*,
                                             Empty*) override {
    return Accept(context);
  }
  ServerUnaryReactor* report_model_metric(CallbackServerContext* context, const pb::ModelMetric*,
                                          Empty*) override {
    return Accept(context);
  }
  ServerUnaryReactor* report_used_resource(CallbackServerContext* context,
                                           const pb::ReportUsedResourceRequest*, Empty*) override {
    return Accept(context);
  }
  ServerUnaryReactor* query_ps_nodes(CallbackServerContext* context, const Empty*,
                                     pb::QueryPsNodesResponse*) override {
    return Accept(context);
  }
  ServerUnaryReactor* init_remote_lock(CallbackServerContext* context,
                                       const pb::InitRemoteLockRequest*, Empty*) override {
    return Accept(context);
  }
  ServerUnaryReactor* report_autotune_status(CallbackServerContext* context,
                                             const pb::AutoResourceConfig*, Empty*) override {
    return Accept(context);
  }
  ServerUnaryReactor* report_version(CallbackServerContext* context,
                                     const pb::ReportVersionRequest*, Empty*) override {
    return Accept(context);
  }
  ServerUnaryReactor* report_evaluation_metrics(CallbackServerContext* context, const Empty*,
                                                Empty*) override {
    return Accept(context);
  }

 private:
  static std::string VersionKey(const std::string& version_type, const std::string& task_type,
                                int32_t task_id) {
    // GLOBAL versions are the cluster's; the others belong to one task.
    return version_type == "GLOBAL" ? version_type
                                    : fmt::format("{}/{}/{}", version_type, task_type, task_id);
  }

  Status Admit(const CallbackServerContext& context) const {
    if (!job_.old_door) {
      return PermissionDenied("--old_door=off: this job serves clients with a token only");
    }
    if (!IsLoopback(context.peer())) {
      return PermissionDenied("{} is not an address of this job's replicas", context.peer());
    }
    return Ok();
  }

  template <typename Work>
  ServerUnaryReactor* Serve(CallbackServerContext* context, Work work) {
    if (const Status status = Admit(*context); !status.ok()) return AnswerNow(status);
    return OnLoop(loop_, std::move(work));
  }

  ServerUnaryReactor* Accept(CallbackServerContext* context) { return AnswerNow(Admit(*context)); }

  ServerUnaryReactor* Fetch(CallbackServerContext* context, ReplicaRef replica,
                            const std::string& dataset, pb::Task* out) {
    if (const Status status = Admit(*context); !status.ok()) return AnswerNow(status);
    const uint64_t id = ++calls_;
    auto* call = new Call();
    // What was granted, if anything; written by the loop before the answer leaves.
    auto granted = std::make_shared<std::optional<LeaseId>>();  // the loop's and the call's
    call->set_on_cancel([this, id, call, replica] {
      loop_.Post([id, call, replica](Core& core) {
        if (core.old_door().FetchCut(id, replica, std::nullopt)) call->Answer(Cancelled("hung up"));
      });
    });
    call->set_on_done([this, id, replica, granted](bool cancelled) {
      if (!cancelled || !granted->has_value()) return;
      loop_.Post([id, replica, lease = **granted](Core& core) {
        core.old_door().FetchCut(id, replica, lease);
      });
    });
    loop_.Post([id, call, replica, dataset, out, granted](Core& core) {
      core.old_door().Fetch(
          id, replica, dataset,
          [&core, call, out, granted](const Result<std::optional<LeasedShard>>& shard) {
            if (shard.ok() && shard->has_value()) {
              ToProto(**shard, core.dispatcher().counters().version, out);
              *granted = (*shard)->lease;
            }
            call->Answer(shard.status());
          });
    });
    return call;
  }

  Loop& loop_;
  const job::JobSpec& job_;
  std::atomic<uint64_t> calls_{uint64_t{1} << 32};  // apart from our service's
};

class TrainLoopService final : public pb::TrainLoopMaster::CallbackService {
 public:
  ServerUnaryReactor* report_evaluation_metrics(CallbackServerContext*, const Empty*,
                                                Empty*) override {
    return AnswerNow(Ok());
  }
  ServerUnaryReactor* report_version(CallbackServerContext*, const pb::ReportVersionRequest*,
                                     Empty*) override {
    return AnswerNow(Ok());
  }
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> NewCompatServices(Loop& loop, const job::JobSpec& job) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<CompatService>(loop, job));
  services.push_back(std::make_unique<TrainLoopService>());
  return services;
}

}  // namespace edl::master
