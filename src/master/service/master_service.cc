#include "master/service/master_service.h"

#include <memory>
#include <optional>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "elasticdl/v1/master.grpc.pb.h"
#include "master/ledger/ledger_report.h"
#include "master/service/call.h"
#include "master/service/token_check.h"

namespace edl::master {
namespace {

using std::chrono::milliseconds;

namespace pb = ::elasticdl::v1;

pb::DatasetSpec ToProto(const DatasetSpec& spec) {
  pb::DatasetSpec out;
  out.set_name(spec.name);
  out.set_size(spec.size);
  out.set_batch_size(spec.batch_size);
  out.set_batches_per_shard(spec.batches_per_shard);
  out.set_epochs(spec.epochs);
  out.set_shuffle_records(spec.order == Order::kShuffleRecords);
  out.set_shuffle_shards(spec.order == Order::kShuffleShards);
  out.set_task_type(std::string(NameOf(spec.task_type)));
  return out;
}

Result<DatasetSpec> FromProto(const pb::DatasetSpec& in) {
  DatasetSpec spec{.name = in.name(),
                   .size = in.size(),
                   .batch_size = in.batch_size(),
                   .batches_per_shard = in.batches_per_shard(),
                   .epochs = in.epochs()};
  if (in.shuffle_shards()) spec.order = Order::kShuffleShards;
  if (in.shuffle_records()) spec.order = Order::kShuffleRecords;
  if (!in.task_type().empty()) {
    const std::optional<TaskType> type = TaskTypeFromName(in.task_type());
    if (!type) {
      return InvalidArgument(
          "dataset '{}' has task type '{}'; expected training, evaluation or prediction", in.name(),
          in.task_type());
    }
    spec.task_type = *type;
  }
  return spec;
}

void ToProto(const LeasedShard& shard, pb::Shard* out) {
  out->set_lease(shard.lease.value());
  out->set_dataset(shard.dataset);
  out->set_generation(shard.generation);
  out->set_epoch(static_cast<uint32_t>(shard.key.epoch));
  out->set_ordinal(shard.key.ordinal);
  out->set_ledger(shard.ledger.value());
  out->set_dataset_id(shard.dataset_id.value());
  out->set_start(shard.start);
  out->set_end(shard.end);
  out->mutable_indices()->Add(shard.indices.begin(), shard.indices.end());
  out->set_version(shard.version);
}

ShardOutcome FromProto(pb::ShardReport::Outcome outcome) {
  switch (outcome) {
    case pb::ShardReport::FAILED:
      return ShardOutcome::kFailed;
    case pb::ShardReport::GIVEN_BACK:
      return ShardOutcome::kGivenBack;
    default:
      return ShardOutcome::kDone;
  }
}

ReportAndLeaseRequest FromProto(const pb::ReportAndLeaseRequest& in, uint64_t call) {
  ReportAndLeaseRequest request{.call = call,
                                .incarnation = Incarnation(in.incarnation()),
                                .number = in.number(),
                                .received = in.received(),
                                .dataset = in.dataset(),
                                .lease_at_most = in.lease_at_most(),
                                .wait = milliseconds(in.wait_ms())};
  request.reports.reserve(static_cast<size_t>(in.reports_size()));
  for (const pb::ShardReport& report : in.reports()) {
    request.reports.push_back({LeaseId(report.lease()), FromProto(report.outcome()), report.error(),
                               PsEpoch(report.ps_epoch()), report.result()});
  }
  return request;
}

void ToProto(const ReportAndLeaseReply& reply, pb::ReportAndLeaseResponse* out) {
  out->set_answer(static_cast<pb::ReportAndLeaseResponse::Answer>(reply.answer));
  for (const LeasedShard& shard : reply.shards) ToProto(shard, out->add_shards());
  for (const ReportVerdict verdict : reply.verdicts) {
    out->add_verdicts(static_cast<pb::ReportAndLeaseResponse::Verdict>(verdict));
  }
  out->set_ps_epoch(reply.ps_epoch.value());
  out->set_next_dataset(reply.next_dataset);
}

pb::Membership ToProto(const Membership& membership) {
  pb::Membership out;
  out.set_number(membership.number);
  out.set_count(membership.count);
  for (const Member& member : membership.members) {
    pb::Member* listed = out.add_members();
    listed->set_role(std::string(job::NameOf(member.role)));
    listed->set_index(member.index);
    listed->set_replica_id(member.id);
  }
  return out;
}

// Replies to the call with a flag, or with an error.
template <typename Response, typename Set>
Reply<bool> BoolReply(Response* response, Call& call, Set set) {
  return [response, &call, set](Result<bool> ready) {
    if (ready.ok()) set(response, *ready);
    call.Answer(ready.status());
  };
}

void SetReady(pb::SyncResponse* out, bool ready) { out->set_ready(ready); }

// Aborted: the call names another ledger. Incarnations and leases are numbers of one ledger, so the
// numbers in the call belong to other processes.
Status CheckLedger(const Core& core, uint64_t ledger) {
  if (ledger == 0 || LedgerId(ledger) == core.ledger_id()) return Ok();
  return Aborted("this process joined with another ledger than the master's: join again");
}

// Wraps a handler so that it gets only calls that name this ledger.
template <auto handler>
struct OfThisLedger;
template <typename Request, typename Response,
          void (*handler)(Core&, Call&, const Request&, Response*)>
struct OfThisLedger<handler> {
  static void Handle(Core& core, Call& call, const Request& in, Response* out) {
    if (const Status status = CheckLedger(core, in.ledger()); !status.ok()) {
      call.Answer(status);
      return;
    }
    handler(core, call, in, out);
  }
};

void Join(Core& core, Call& call, const pb::JoinRequest& in, pb::JoinResponse* out) {
  const auto role = job::RoleFromName(in.role());
  if (!role || *role == job::Role::kMaster) {
    call.Answer(InvalidArgument(
        "a process with role '{}' cannot join; expected worker, chief, evaluator or ps",
        in.role()));
    return;
  }
  JoinRequest request{.replica = {*role, in.replica_id()},
                      .incarnation = Incarnation(in.incarnation()),
                      .process = in.process()};
  for (const uint64_t lease : in.held()) request.held.emplace_back(lease);
  const milliseconds heartbeat = core.master_api().HeartbeatInterval();
  core.master_api().Join(
      request, [out, &call, heartbeat, ledger = core.ledger_id()](Result<JoinReply> reply) {
        if (reply.ok()) {
          out->set_ledger(ledger.value());
          out->set_incarnation(reply->incarnation.value());
          for (const LeaseId lease : reply->held) out->add_held(lease.value());
          out->set_heartbeat_ms(static_cast<uint32_t>(heartbeat.count()));
          out->set_silence_ms(MasterApi::kSilence.count());
        }
        call.Answer(reply.status());
      });
}

void Leave(Core& core, Call& call, const pb::LeaveRequest& in, pb::LeaveResponse*) {
  core.master_api().Leave(Incarnation(in.incarnation()),
                          [&call](const Result<Done>& done) { call.Answer(done.status()); });
}

void Heartbeat(Core& core, Call& call, const pb::HeartbeatRequest& in, pb::HeartbeatResponse* out) {
  out->set_heartbeat_ms(static_cast<uint32_t>(core.master_api().HeartbeatInterval().count()));
  core.master_api().Heartbeat(Incarnation(in.incarnation()),
                              [&call](const Result<Done>& done) { call.Answer(done.status()); });
}

void ReportAndLease(Core& core, Call& call, const pb::ReportAndLeaseRequest& in,
                    pb::ReportAndLeaseResponse* out) {
  call.set_on_disconnect([&call](Core& core) {
    // A call that does not wait any more has been answered.
    if (core.master_api().Abandon(call.id())) call.Answer(Cancelled("the client disconnected"));
  });
  core.master_api().ReportAndLease(FromProto(in, call.id()),
                                   [out, &call](Result<ReportAndLeaseReply> reply) {
                                     if (reply.ok()) ToProto(*reply, out);
                                     call.Answer(reply.status());
                                   });
}

void RegisterDataset(Core& core, Call& call, const pb::RegisterDatasetRequest& in,
                     pb::RegisterDatasetResponse* out) {
  Result<DatasetSpec> spec = FromProto(in.spec());
  if (!spec.ok()) {
    call.Answer(spec.status());
    return;
  }
  const auto dataset = core.Register(std::move(*spec));
  if (dataset.ok()) {
    *out->mutable_spec() = ToProto((*dataset)->spec());
    out->set_generation((*dataset)->row().generation);
  }
  AnswerLater(core, call, dataset.status());
}

void ResetDataset(Core& core, Call& call, const pb::ResetDatasetRequest& in,
                  pb::ResetDatasetResponse* out) {
  const auto generation = core.Reset(in.dataset(), in.request_id());
  if (generation.ok()) out->set_generation(*generation);
  AnswerLater(core, call, generation.status());
}

void GetDataset(Core& core, Call& call, const pb::GetDatasetRequest& in,
                pb::GetDatasetResponse* out) {
  const Dataset* dataset = core.dispatcher().Find(in.dataset());
  if (dataset == nullptr) {
    call.Answer(NotFound("no dataset is named '{}'", in.dataset()));
    return;
  }
  const job::DatasetView view = dataset->View();
  *out->mutable_spec() = ToProto(dataset->spec());
  out->set_generation(dataset->row().generation);
  out->set_epoch(static_cast<uint32_t>(view.epoch));
  out->set_records_done(view.records_done);
  out->set_finished(view.finished);
  call.Answer(Ok());
}

void SaveShards(Core& core, Call& call, const pb::SaveShardsRequest& in,
                pb::SaveShardsResponse* out) {
  auto content = core.dispatcher().Save(in.dataset());
  if (content.ok()) out->set_content(std::move(*content));
  AnswerLater(core, call, content.status());
}

void RestoreShards(Core& core, Call& call, const pb::RestoreShardsRequest& in,
                   pb::RestoreShardsResponse* out) {
  const auto generation = core.Restore(in.content(), in.request_id());
  if (generation.ok()) out->set_generation(*generation);
  AnswerLater(core, call, generation.status());
}

void Arrive(Core& core, Call& call, const pb::ArriveRequest& in, pb::SyncResponse* out) {
  core.master_api().Arrive(Incarnation(in.incarnation()), in.name(), milliseconds(in.wait_ms()),
                           BoolReply(out, call, SetReady));
}

void ReportProgress(Core& core, Call& call, const pb::ReportProgressRequest& in,
                    pb::SyncResponse* out) {
  core.master_api().ReportProgress(
      Incarnation(in.incarnation()), in.rests() ? std::nullopt : std::optional(in.batches()),
      in.ahead(), milliseconds(in.wait_ms()), BoolReply(out, call, SetReady));
}

void AwaitEvent(Core& core, Call& call, const pb::AwaitEventRequest& in, pb::SyncResponse* out) {
  core.master_api().AwaitEvent(in.name(), milliseconds(in.wait_ms()),
                               BoolReply(out, call, SetReady));
}

void Notify(Core& core, Call& call, const pb::NotifyRequest& in, pb::SyncResponse* out) {
  core.master_api().Notify(in.name());
  out->set_ready(true);
  AnswerLater(core, call, Ok());
}

void DeleteSync(Core& core, Call& call, const pb::DeleteSyncRequest& in, pb::SyncResponse* out) {
  core.DeleteSync(in.all() ? std::nullopt : std::optional(in.name()), in.request_id());
  out->set_ready(true);
  AnswerLater(core, call, Ok());
}

void AcquireLock(Core& core, Call& call, const pb::AcquireLockRequest& in,
                 pb::AcquireLockResponse* out) {
  core.master_api().AcquireLock(
      Incarnation(in.incarnation()), in.name(), milliseconds(in.wait_ms()),
      BoolReply(out, call,
                [](pb::AcquireLockResponse* o, bool acquired) { o->set_acquired(acquired); }));
}

void ReleaseLock(Core& core, Call& call, const pb::ReleaseLockRequest& in,
                 pb::ReleaseLockResponse* out) {
  core.master_api().ReleaseLock(Incarnation(in.incarnation()), in.name(),
                                BoolReply(out, call, [](pb::ReleaseLockResponse* o, bool released) {
                                  o->set_released(released);
                                }));
}

void Finish(Core& core, Call& call, const pb::FinishRequest& in, pb::FinishResponse*) {
  const Result<ReplicaRef> replica = core.master_api().ReplicaOf(Incarnation(in.incarnation()));
  if (replica.ok()) core.OnFinish(*replica);
  AnswerLater(core, call, replica.status());
}

void Fail(Core& core, Call& call, const pb::FailRequest& in, pb::FailResponse*) {
  const Result<ReplicaRef> replica = core.master_api().ReplicaOf(Incarnation(in.incarnation()));
  if (replica.ok()) core.OnFail(*replica, in.message());
  AnswerLater(core, call, replica.status());
}

void GetResults(Core& core, Call& call, const pb::GetResultsRequest& in,
                pb::GetResultsResponse* out) {
  Result<ResultPage> page = core.dispatcher().GetResults(in.dataset(), in.generation(), in.first());
  if (page.ok()) {
    for (ResultRow& row : page->rows) {
      pb::ShardResult* result = out->add_results();
      result->set_ordinal(row.ordinal);
      result->set_result(std::move(row.result));
    }
    out->set_more(page->more);
  }
  AnswerLater(core, call, page.status());
}

void ReportMetrics(Core& core, Call& call, const pb::ReportMetricsRequest& in,
                   pb::ReportMetricsResponse*) {
  core.OnMetrics(in.step(), {in.metrics().begin(), in.metrics().end()});
  call.Answer(Ok());
}

void GetJob(Core& core, Call& call, const pb::GetJobRequest&, pb::GetJobResponse* out) {
  out->set_view_json(core.View().ToJson());
  call.Answer(Ok());
}

void GetLedger(Core& core, Call& call, const pb::GetLedgerRequest&, pb::GetLedgerResponse* out) {
  auto text = core.LedgerJson();
  if (text.ok()) out->set_ledger_json(std::move(*text));
  call.Answer(text.status());
}

void GetTelemetry(Core& core, Call& call, const pb::GetTelemetryRequest& in,
                  pb::GetTelemetryResponse* out) {
  telemetry::Query query{.series = {in.series().begin(), in.series().end()}, .from = in.from()};
  if (in.max_points() > 0) query.max_points = in.max_points();
  if (in.to() > 0) query.to = in.to();
  out->set_curves_json(core.Telemetry(query).ToJson());
  call.Answer(Ok());
}

void Scale(Core& core, Call& call, const pb::ScaleRequest& in, pb::ScaleResponse*) {
  AnswerLater(core, call, core.Scale(in.num_workers()));
}

void Stop(Core& core, Call& call, const pb::StopRequest& in, pb::StopResponse*) {
  core.Stop(in.reason().empty() ? "stopped by its user" : in.reason());
  AnswerLater(core, call, Ok());
}

// The newest membership as a message, shared by all watchers.
using NewestMembership = std::shared_ptr<const pb::Membership>;

// Writes the membership of the job to one watcher after each change. A slow watcher gets only the
// newest state. Deletes itself when the watcher has disconnected.
class MembershipStream final {
 public:
  static void Open(Core& core, Call& call, const pb::WatchRequest& in, NewestMembership& newest) {
    auto stream = std::unique_ptr<MembershipStream>(new MembershipStream(call, in, newest));
    const Status status = core.master_api().Watch(
        Incarnation(in.incarnation()), call.id(),
        [stream = stream.get()](const Membership& membership) { stream->Push(membership); });
    if (!status.ok()) {
      call.Answer(status);
      return;
    }
    call.set_on_written([stream = stream.get()] { stream->WriteNext(); });
    call.set_on_disconnect([stream = stream.release()](Core& core) { stream->OnHangUp(core); });
  }

 private:
  MembershipStream(Call& call, const pb::WatchRequest& in, NewestMembership& newest)
      : call_(call), incarnation_(in.incarnation()), newest_(newest) {}

  void OnHangUp(Core& core) {
    open_ = false;
    core.master_api().Unwatch(incarnation_, call_.id());
    if (job::IsFinal(core.state())) {  // the loop ends and sends nothing more
      End();
      return;
    }
    // Drop the stream after the pushes of this round, which are in the outbox.
    core.SendAfterCommit([this] { End(); });
  }

  void Push(const Membership& membership) {
    if (newest_ == nullptr || newest_->number() != membership.number) {
      newest_ = std::make_shared<const pb::Membership>(ToProto(membership));
    }
    next_ = newest_;
    WriteNext();
  }

  void WriteNext() {
    if (!open_ || next_ == nullptr || call_.writing()) return;
    call_.Write(*std::exchange(next_, nullptr));
  }

  void End() {
    call_.Drop();
    delete this;
  }

  Call& call_;
  const Incarnation incarnation_;
  NewestMembership& newest_;
  NewestMembership next_;  // null: nothing to write
  bool open_ = true;
};

}  // namespace

void AddMasterService(const std::string& token, Methods& methods) {
  Methods::Service service(
      methods, pb::Master::service_full_name(), [token](const Core&, const auto& context) {
        return CheckToken(context, token,
                          "send the token in the file that ELASTICDL_TOKEN_FILE names");
      });
  service.Add<pb::WatchRequest, pb::Membership>(
      "Watch", [newest = std::make_shared<NewestMembership>()](
                   Core& core, Call& call, const pb::WatchRequest& in, pb::Membership*) {
        if (const Status status = CheckLedger(core, in.ledger()); !status.ok()) {
          call.Answer(status);
          return;
        }
        MembershipStream::Open(core, call, in, *newest);
      });
  service.Add("Join", OfThisLedger<Join>::Handle);
  service.Add("Leave", OfThisLedger<Leave>::Handle);
  service.Add("Heartbeat", OfThisLedger<Heartbeat>::Handle);
  service.Add("ReportAndLease", OfThisLedger<ReportAndLease>::Handle);
  service.Add("RegisterDataset", RegisterDataset);
  service.Add("ResetDataset", ResetDataset);
  service.Add("GetDataset", GetDataset);
  service.Add("SaveShards", SaveShards);
  service.Add("RestoreShards", RestoreShards);
  service.Add("Arrive", OfThisLedger<Arrive>::Handle);
  service.Add("ReportProgress", OfThisLedger<ReportProgress>::Handle);
  service.Add("AwaitEvent", AwaitEvent);
  service.Add("Notify", Notify);
  service.Add("DeleteSync", DeleteSync);
  service.Add("AcquireLock", OfThisLedger<AcquireLock>::Handle);
  service.Add("ReleaseLock", OfThisLedger<ReleaseLock>::Handle);
  service.Add("Finish", OfThisLedger<Finish>::Handle);
  service.Add("Fail", OfThisLedger<Fail>::Handle);
  service.Add("GetResults", GetResults);
  service.Add("ReportMetrics", OfThisLedger<ReportMetrics>::Handle);
  service.Add("GetJob", GetJob);
  service.Add("GetLedger", GetLedger);
  service.Add("GetTelemetry", GetTelemetry);
  service.Add("Scale", Scale);
  service.Add("Stop", Stop);
}

}  // namespace edl::master
