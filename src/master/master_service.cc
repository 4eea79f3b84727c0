#include "master/master_service.h"

#include <atomic>
#include <deque>
#include <utility>

#include "elasticdl/v1/master.grpc.pb.h"
#include <grpcpp/grpcpp.h>

#include "base/mutex.h"
#include "master/call.h"
#include "master/ledger_report.h"

namespace edl::master {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
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
  out.set_task_type(spec.task_type);
  return out;
}

DatasetSpec FromProto(const pb::DatasetSpec& in) {
  DatasetSpec spec{.name = in.name(),
                   .size = in.size(),
                   .batch_size = in.batch_size(),
                   .batches_per_shard = in.batches_per_shard(),
                   .epochs = in.epochs()};
  if (in.shuffle_shards()) spec.order = Order::kShuffleShards;
  if (in.shuffle_records()) spec.order = Order::kShuffleRecords;
  if (!in.task_type().empty()) spec.task_type = in.task_type();
  return spec;
}

void ToProto(const LeasedShard& shard, pb::Shard* out) {
  out->set_lease(shard.lease.value());
  out->set_dataset(shard.dataset);
  out->set_generation(shard.generation);
  out->set_epoch(static_cast<uint32_t>(shard.key.epoch));
  out->set_ordinal(shard.key.ordinal);
  out->set_start(shard.start);
  out->set_end(shard.end);
  out->mutable_indices()->Add(shard.indices.begin(), shard.indices.end());
}

Outcome FromProto(pb::ShardReport::Outcome outcome) {
  switch (outcome) {
    case pb::ShardReport::FAILED:
      return Outcome::kFailed;
    case pb::ShardReport::GIVEN_BACK:
      return Outcome::kGivenBack;
    default:
      return Outcome::kDone;
  }
}

ExchangeRequest FromProto(const pb::ExchangeRequest& in, uint64_t call) {
  ExchangeRequest request{.call = call,
                          .incarnation = Incarnation(in.incarnation()),
                          .number = in.number(),
                          .received = in.received(),
                          .dataset = in.dataset(),
                          .lease_at_most = in.lease_at_most(),
                          .wait = milliseconds(in.wait_ms())};
  request.reports.reserve(static_cast<size_t>(in.reports_size()));
  for (const pb::ShardReport& report : in.reports()) {
    request.reports.push_back(
        {LeaseId(report.lease()), FromProto(report.outcome()), report.error()});
  }
  return request;
}

void ToProto(const ExchangeReply& reply, pb::ExchangeResponse* out) {
  out->set_answer(static_cast<pb::ExchangeResponse::Answer>(reply.answer));
  for (const LeasedShard& shard : reply.shards) ToProto(shard, out->add_shards());
  for (const Verdict verdict : reply.verdicts) {
    out->add_verdicts(static_cast<pb::ExchangeResponse::Verdict>(verdict));
  }
}

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

// Answers with a ready flag that came from the loop.
template <typename Response, typename Set>
Reply<bool> BoolReply(Response* response, const AnswerCall& answer, Set set) {
  return [response, answer, set](Result<bool> ready) {
    if (ready.ok()) set(response, *ready);
    answer(ready.status());
  };
}

// The membership of a job, written to one watcher as it changes. A slow watcher gets the newest
// state, not each one.
class MembershipStream final : public grpc::ServerWriteReactor<pb::Membership> {
 public:
  MembershipStream(Loop& loop, Incarnation incarnation, uint64_t id)
      : loop_(loop), incarnation_(incarnation), id_(id) {
    loop_.Post([this](Core& core) {
      const Status status = core.our_door().Watch(
          incarnation_, id_, [this](const Membership& membership) { Push(membership); });
      if (!status.ok()) End(rpc::ToGrpc(status));
    });
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(mutex_);
    writing_ = false;
    if (ok) WriteNext();
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override {
    // The loop may still push: it lets go first, then the stream ends.
    loop_.Post([this](Core& core) {
      core.our_door().Unwatch(incarnation_, id_);
      // Pushes of this very round are still in the outbox.
      core.outbox().Add([this] { delete this; });
    });
  }

 private:
  void Push(const Membership& membership) {
    pb::Membership next;
    next.set_number(membership.number);
    for (const Member& member : membership.members) {
      pb::Member* out = next.add_members();
      out->set_role(std::string(job::NameOf(member.role)));
      out->set_index(member.index);
      out->set_replica_id(member.id);
    }
    const MutexLock lock(mutex_);
    next_ = std::move(next);
    pending_ = true;
    WriteNext();
  }

  void WriteNext() REQUIRES(mutex_) {
    if (writing_ || ended_ || !pending_) return;
    writing_ = true;
    pending_ = false;
    current_ = std::move(next_);
    StartWrite(&current_);
  }

  void End(const grpc::Status& status) {
    const MutexLock lock(mutex_);
    if (ended_) return;
    ended_ = true;
    Finish(status);
  }

  Loop& loop_;
  const Incarnation incarnation_;
  const uint64_t id_;
  Mutex mutex_;
  pb::Membership current_ GUARDED_BY(mutex_);
  pb::Membership next_ GUARDED_BY(mutex_);
  bool pending_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
};

// Ends at once with a refusal.
class RefusedStream final : public grpc::ServerWriteReactor<pb::Membership> {
 public:
  explicit RefusedStream(const Status& status) { Finish(rpc::ToGrpc(status)); }
  void OnDone() override { delete this; }
};

class MasterService final : public pb::Master::CallbackService {
 public:
  MasterService(Loop& loop, std::string token)
      : loop_(loop), expected_("Bearer " + std::move(token)) {}

  ServerUnaryReactor* Join(CallbackServerContext* context, const pb::JoinRequest* in,
                           pb::JoinResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      const auto role = job::RoleFromName(in->role());
      if (!role || *role == job::Role::kMaster) {
        answer(InvalidArgument("'{}' is not a role that joins", in->role()));
        return;
      }
      JoinRequest request{.replica = {*role, in->replica_id()},
                          .incarnation = Incarnation(in->incarnation()),
                          .process = in->process()};
      for (const uint64_t lease : in->held()) request.held.emplace_back(lease);
      core.our_door().Join(request, [out, answer](Result<JoinReply> reply) {
        if (reply.ok()) {
          out->set_incarnation(reply->incarnation.value());
          for (const LeaseId lease : reply->held) out->add_held(lease.value());
          out->set_beat_ms(OurDoor::kBeat.count());
          out->set_silence_ms(OurDoor::kSilence.count());
        }
        answer(reply.status());
      });
    });
  }

  ServerUnaryReactor* Leave(CallbackServerContext* context, const pb::LeaveRequest* in,
                            pb::LeaveResponse*) override {
    return Guarded(context, [in](Core& core, const AnswerCall& answer) {
      core.our_door().Leave(Incarnation(in->incarnation()),
                            [answer](const Result<Done>& done) { answer(done.status()); });
    });
  }

  ServerUnaryReactor* Beat(CallbackServerContext* context, const pb::BeatRequest* in,
                           pb::BeatResponse*) override {
    return Guarded(context, [in](Core& core, const AnswerCall& answer) {
      core.our_door().Beat(Incarnation(in->incarnation()),
                           [answer](const Result<Done>& done) { answer(done.status()); });
    });
  }

  grpc::ServerWriteReactor<pb::Membership>* Watch(CallbackServerContext* context,
                                                  const pb::WatchRequest* in) override {
    if (const Status status = Authorize(*context); !status.ok()) return new RefusedStream(status);
    return new MembershipStream(loop_, Incarnation(in->incarnation()), ++calls_);
  }

  ServerUnaryReactor* Exchange(CallbackServerContext* context, const pb::ExchangeRequest* in,
                               pb::ExchangeResponse* out) override {
    if (const Status status = Authorize(*context); !status.ok()) return AnswerNow(status);
    const uint64_t id = ++calls_;
    auto* call = new Call();
    call->set_on_cancel([this, id, call] {
      loop_.Post([id, call](Core& core) {
        // Only a call that still waited is ended here; another has its answer.
        if (core.dispatcher().DropWaiter(id, core.now())) call->Answer(Cancelled("hung up"));
      });
    });
    loop_.Post([id, in, out, call](Core& core) {
      core.our_door().Exchange(FromProto(*in, id), [out, call](Result<ExchangeReply> reply) {
        if (reply.ok()) ToProto(*reply, out);
        call->Answer(reply.status());
      });
    });
    return call;
  }

  ServerUnaryReactor* RegisterDataset(CallbackServerContext* context,
                                      const pb::RegisterDatasetRequest* in,
                                      pb::RegisterDatasetResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      const auto dataset = core.Register(FromProto(in->spec()));
      if (dataset.ok()) {
        *out->mutable_spec() = ToProto((*dataset)->spec());
        out->set_generation((*dataset)->row().generation);
      }
      Later(core, answer, dataset.status());
    });
  }

  ServerUnaryReactor* ResetDataset(CallbackServerContext* context,
                                   const pb::ResetDatasetRequest* in,
                                   pb::ResetDatasetResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      const auto dataset = core.Reset(in->dataset());
      if (dataset.ok()) out->set_generation((*dataset)->row().generation);
      Later(core, answer, dataset.status());
    });
  }

  ServerUnaryReactor* GetDataset(CallbackServerContext* context, const pb::GetDatasetRequest* in,
                                 pb::GetDatasetResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      const Dataset* dataset = core.dispatcher().Find(in->dataset());
      if (dataset == nullptr) {
        answer(NotFound("no dataset is named '{}'", in->dataset()));
        return;
      }
      const job::DatasetView view = dataset->View();
      *out->mutable_spec() = ToProto(dataset->spec());
      out->set_generation(dataset->row().generation);
      out->set_epoch(static_cast<uint32_t>(view.epoch));
      out->set_records_done(view.records_done);
      out->set_finished(view.finished);
      answer(Ok());
    });
  }

  ServerUnaryReactor* SaveShards(CallbackServerContext* context, const pb::SaveShardsRequest* in,
                                 pb::SaveShardsResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      auto content = core.dispatcher().Save(in->dataset());
      if (content.ok()) out->set_content(std::move(*content));
      Later(core, answer, content.status());
    });
  }

  ServerUnaryReactor* RestoreShards(CallbackServerContext* context,
                                    const pb::RestoreShardsRequest* in,
                                    pb::RestoreShardsResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      const auto dataset = core.Restore(in->content());
      if (dataset.ok()) out->set_generation((*dataset)->row().generation);
      Later(core, answer, dataset.status());
    });
  }

  ServerUnaryReactor* Arrive(CallbackServerContext* context, const pb::ArriveRequest* in,
                             pb::SyncResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      core.our_door().Arrive(Incarnation(in->incarnation()), in->name(),
                             milliseconds(in->wait_ms()), BoolReply(out, answer, SetReady));
    });
  }

  ServerUnaryReactor* AwaitEvent(CallbackServerContext* context, const pb::AwaitEventRequest* in,
                                 pb::SyncResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      core.our_door().AwaitEvent(in->name(), milliseconds(in->wait_ms()),
                                 BoolReply(out, answer, SetReady));
    });
  }

  ServerUnaryReactor* Notify(CallbackServerContext* context, const pb::NotifyRequest* in,
                             pb::SyncResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      core.sync().Notify(in->name());
      out->set_ready(true);
      Later(core, answer, Ok());
    });
  }

  ServerUnaryReactor* DeleteSync(CallbackServerContext* context, const pb::DeleteSyncRequest* in,
                                 pb::SyncResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      if (in->all()) {
        core.sync().DeleteAll();
      } else {
        core.sync().Delete(in->name());
      }
      out->set_ready(true);
      Later(core, answer, Ok());
    });
  }

  ServerUnaryReactor* AcquireLock(CallbackServerContext* context, const pb::AcquireLockRequest* in,
                                  pb::AcquireLockResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      core.our_door().AcquireLock(
          Incarnation(in->incarnation()), in->name(), milliseconds(in->wait_ms()),
          BoolReply(out, answer,
                    [](pb::AcquireLockResponse* o, bool acquired) { o->set_acquired(acquired); }));
    });
  }

  ServerUnaryReactor* ReleaseLock(CallbackServerContext* context, const pb::ReleaseLockRequest* in,
                                  pb::ReleaseLockResponse* out) override {
    return Guarded(context, [in, out](Core& core, const AnswerCall& answer) {
      core.our_door().ReleaseLock(
          Incarnation(in->incarnation()), in->name(),
          BoolReply(out, answer,
                    [](pb::ReleaseLockResponse* o, bool released) { o->set_released(released); }));
    });
  }

  ServerUnaryReactor* ReportMetrics(CallbackServerContext* context,
                                    const pb::ReportMetricsRequest* in,
                                    pb::ReportMetricsResponse*) override {
    return Guarded(context, [in](Core& core, const AnswerCall& answer) {
      core.OnMetrics(in->step(), {in->metrics().begin(), in->metrics().end()});
      answer(Ok());
    });
  }

  ServerUnaryReactor* GetJob(CallbackServerContext* context, const pb::GetJobRequest*,
                             pb::GetJobResponse* out) override {
    return Guarded(context, [out](Core& core, const AnswerCall& answer) {
      out->set_view_json(core.View().ToJson());
      answer(Ok());
    });
  }

  ServerUnaryReactor* GetLedger(CallbackServerContext* context, const pb::GetLedgerRequest*,
                                pb::GetLedgerResponse* out) override {
    return Guarded(context, [out](Core& core, const AnswerCall& answer) {
      auto text = core.LedgerJson();
      if (text.ok()) out->set_ledger_json(std::move(*text));
      answer(text.status());
    });
  }

  ServerUnaryReactor* Scale(CallbackServerContext* context, const pb::ScaleRequest* in,
                            pb::ScaleResponse*) override {
    return Guarded(context, [in](Core& core, const AnswerCall& answer) {
      Later(core, answer, core.Scale(in->num_workers()));
    });
  }

  ServerUnaryReactor* Stop(CallbackServerContext* context, const pb::StopRequest* in,
                           pb::StopResponse*) override {
    return Guarded(context, [in](Core& core, const AnswerCall& answer) {
      core.Stop(in->reason().empty() ? "stopped by its user" : in->reason());
      Later(core, answer, Ok());
    });
  }

 private:
  static void SetReady(pb::SyncResponse* out, bool ready) { out->set_ready(ready); }

  // Answers once what was decided is durable.
  static void Later(Core& core, const AnswerCall& answer, const Status& status) {
    core.outbox().Add([answer, status] { answer(status); });
  }

  Status Authorize(const CallbackServerContext& context) const {
    const auto& metadata = context.client_metadata();
    auto found = metadata.find("authorization");
    if (found == metadata.end()) {
      return Unauthenticated("the call has no token; ELASTICDL_TOKEN_FILE names the job's");
    }
    if (!SameSecret({found->second.data(), found->second.size()}, expected_)) {
      return Unauthenticated("the call's token is not this job's");
    }
    return Ok();
  }

  template <typename Work>
  ServerUnaryReactor* Guarded(CallbackServerContext* context, Work work) {
    if (const Status status = Authorize(*context); !status.ok()) return AnswerNow(status);
    return OnLoop(loop_, std::move(work));
  }

  Loop& loop_;
  const std::string expected_;
  std::atomic<uint64_t> calls_{0};
};

}  // namespace

std::unique_ptr<grpc::Service> NewMasterService(Loop& loop, std::string token) {
  return std::make_unique<MasterService>(loop, std::move(token));
}

}  // namespace edl::master
