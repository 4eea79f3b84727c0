#include "master/testing/core_fixture.h"

#include <variant>

#include "base/testing/status_matchers.h"
#include "job/names.h"

namespace edl::master {
namespace {

constexpr uint64_t kSeed = 7;
constexpr Duration kLoopStep = milliseconds(500);

}  // namespace

std::string NameOf(ReplicaRef replica) { return job::ReplicaName(kJob, replica.role, replica.id); }

job::JobSpec WorkersOnly(int num_workers) {
  job::JobSpec spec;
  spec.job_name = kJob;
  spec.job_command = "python train.py";
  spec.num_workers = num_workers;
  spec.num_minibatches_per_task = 2;
  spec.relaunch_on_worker_failure = 3;
  spec.ps_relaunch_max_num = 1;
  spec.evaluator_grace_secs = 60;
  for (const job::Role role : job::kReplicaRoles) spec.resources[role];
  return spec;
}

job::JobSpec TensorFlowJob(int num_workers, int num_ps, int num_evaluators) {
  job::JobSpec spec = WorkersOnly(num_workers);
  spec.num_ps = num_ps;
  spec.num_evaluators = num_evaluators;
  spec.need_tf_config = true;
  return spec;
}

DatasetSpec Shards(int64_t shards, int64_t epochs) {
  return {.name = kData,
          .size = shards * 10,
          .batch_size = 5,
          .batches_per_shard = 2,
          .epochs = epochs};
}

job::ExitCause Succeeded() { return {.kind = job::ExitCause::Kind::kSucceeded}; }
job::ExitCause Failed() {
  return {.kind = job::ExitCause::Kind::kFailed, .exit_code = 3, .message = "exit code 3"};
}
job::ExitCause Killed() {
  return {.kind = job::ExitCause::Kind::kKilled, .signal = 9, .message = "killed by SIGKILL"};
}
job::ExitCause OutOfMemory() {
  return {.kind = job::ExitCause::Kind::kOutOfMemory, .signal = 9, .message = "out of memory"};
}

CoreFixture::CoreFixture(job::JobSpec spec)
    : spec_(std::move(spec)), ledger_(*Ledger::Open(":memory:")) {
  Make();
}

void CoreFixture::Make() {
  core_ = std::make_unique<Core>(ledger_, spec_, kSeed);
  EXPECT_OK(core_->Load(clock_.Now(), clock_.WallNow()));
  Commit();
}

void CoreFixture::CrashAndReload(bool synced) {
  core_.reset();
  ledger_.Rollback();
  launches_.clear();
  stops_.clear();
  acknowledged_.clear();
  Make();
  if (!synced) return;
  // The backend reports each running replica, then that it is synced.
  const auto replicas = core_->keeper().replicas();
  for (const auto& [name, replica] : replicas) {
    if (replica.row.state == job::ReplicaState::kRunning) Running(name, replica.row.process_id);
  }
  Synced();
}

void CoreFixture::Commit() {
  EXPECT_OK(core_->Commit());
  for (const Command& command : core_->TakeCommands()) {
    if (const auto* launch = std::get_if<LaunchCommand>(&command)) launches_.push_back(*launch);
    if (const auto* stop = std::get_if<StopCommand>(&command)) stops_.push_back(stop->name);
    if (const auto* acknowledge = std::get_if<AcknowledgeCommand>(&command)) {
      acknowledged_.push_back(acknowledge->name);
    }
  }
}

void CoreFixture::Tick() {
  core_->Tick();
  Commit();
}

void CoreFixture::LetPass(Duration time) {
  while (time > Duration::zero()) {
    const Duration step = std::min(time, kLoopStep);
    time -= step;
    clock_.Advance(step);
    core_->Advance(clock_.Now(), clock_.WallNow());
    for (const Incarnation incarnation : alive_) {
      core_->master_api().Heartbeat(incarnation, Later<Done>().reply());
    }
    Tick();
  }
}

void CoreFixture::Stall(Duration time) {
  clock_.Advance(time);
  core_->Advance(clock_.Now(), clock_.WallNow());
  Tick();
}

void CoreFixture::Synced() {
  core_->OnReplicaEvent({.kind = job::ReplicaEvent::Kind::kSynced}, {});
  Commit();
}

void CoreFixture::StartReplicas() {
  Synced();
  for (const LaunchCommand& launch : TakeLaunches()) Running(launch.name);
}

void CoreFixture::Pending(const std::string& name, const std::string& reason) {
  core_->OnReplicaEvent({.name = name, .kind = job::ReplicaEvent::Kind::kPending, .reason = reason},
                        {});
  Commit();
}

void CoreFixture::Running(const std::string& name, int64_t process_id) {
  core_->OnReplicaEvent(
      {.name = name, .kind = job::ReplicaEvent::Kind::kRunning, .process_id = process_id}, {});
  Commit();
}

void CoreFixture::NodeOf(const std::string& name, bool lost) {
  core_->OnReplicaEvent(
      {.name = name, .kind = job::ReplicaEvent::Kind::kRunning, .process_id = 1, .node_lost = lost},
      {});
  Commit();
}

void CoreFixture::Exit(const std::string& name, const job::ExitCause& cause,
                       std::vector<std::string> last_lines) {
  core_->OnReplicaEvent({.name = name, .kind = job::ReplicaEvent::Kind::kExited, .cause = cause},
                        std::move(last_lines));
  Commit();
}

void CoreFixture::Log(ReplicaRef replica, std::string_view text) {
  core_->OnLog(NameOf(replica), text);
  Tick();
}

const Dataset& CoreFixture::Register(const DatasetSpec& spec) {
  const Result<const Dataset*> dataset = core_->Register(spec);
  Commit();
  // Without a dataset there is nothing to return.
  CHECK(dataset.ok(), "cannot register a dataset: {}", dataset.status().message());
  return **dataset;
}

job::DatasetView CoreFixture::Data(const std::string& name) const {
  for (const job::DatasetView& view : core_->View().datasets) {
    if (view.name == name) return view;
  }
  ADD_FAILURE() << "the view has no dataset '" << name << "'";
  return {};
}

Result<JoinReply> CoreFixture::TryJoin(const JoinRequest& request) {
  const Later<JoinReply> answer;
  core_->master_api().Join(request, answer.reply());
  Commit();
  if (answer.result().ok()) alive_.insert(answer->incarnation);
  return answer.result();
}

Status CoreFixture::Heartbeat(Incarnation incarnation) {
  const Later<Done> answer;
  core_->master_api().Heartbeat(incarnation, answer.reply());
  Commit();
  return answer.result().status();
}

Later<ReportAndLeaseReply> CoreFixture::ReportAndLease(ReportAndLeaseRequest request) {
  Later<ReportAndLeaseReply> answer;
  request.call = NextCall();
  core_->master_api().ReportAndLease(request, answer.reply());
  Commit();
  return answer;
}

CoreFixture::HeldFetch CoreFixture::Fetch(ReplicaRef replica, const std::string& dataset) {
  HeldFetch fetch{.call = NextCall()};
  core_->compat_api().Fetch(fetch.call, replica, dataset, fetch.answer.reply());
  Commit();
  return fetch;
}

LeasedShard CoreFixture::FetchShard(ReplicaRef replica, const std::string& dataset) {
  const HeldFetch fetch = Fetch(replica, dataset);
  if (!fetch.answer.answered() || !fetch.answer->has_value()) {
    ADD_FAILURE() << NameOf(replica) << " got no shard";
    return {};
  }
  return **fetch.answer;
}

void CoreFixture::ReportTask(const LeasedShard& shard, const std::string& error) {
  core_->compat_api().ReportTask(shard.dataset, shard.task, error);
  Commit();
}

std::vector<LaunchCommand> CoreFixture::TakeLaunches() { return std::exchange(launches_, {}); }
std::vector<std::string> CoreFixture::TakeStops() { return std::exchange(stops_, {}); }
std::vector<std::string> CoreFixture::TakeAcknowledged() {
  return std::exchange(acknowledged_, {});
}

job::ReplicaState CoreFixture::StateOf(const std::string& name) const {
  const ReplicaKeeper::Replica* replica = core_->keeper().Find(name);
  if (replica == nullptr) {
    ADD_FAILURE() << "the master has no replica " << name;
    return {};
  }
  return replica->row.state;
}

OurClient::OurClient(CoreFixture& master, ReplicaRef replica) : master_(master), replica_(replica) {
  const auto joined = master_.TryJoin({.replica = replica, .process = "host:1"});
  EXPECT_OK(joined);
  if (joined.ok()) incarnation_ = joined->incarnation;
}

Later<ReportAndLeaseReply> OurClient::ReportAndLease(std::vector<ShardReport> reports,
                                                     uint32_t at_most, milliseconds wait) {
  last_ = {.incarnation = incarnation_,
           .number = number_ + 1,
           .received = number_,
           .reports = std::move(reports),
           .dataset = kData,
           .lease_at_most = at_most,
           .wait = wait};
  ++number_;
  return master_.ReportAndLease(last_);
}

Later<ReportAndLeaseReply> OurClient::Repeat() { return master_.ReportAndLease(last_); }

std::vector<LeasedShard> OurClient::LeaseMany(uint32_t at_most) {
  const Later<ReportAndLeaseReply> answer = Ask(at_most);
  if (!answer.answered() || !answer.result().ok() || answer->answer != LeaseAnswer::kShards) {
    ADD_FAILURE() << NameOf(replica_) << " got no shard";
    return {LeasedShard{}};
  }
  return answer->shards;
}

ReportVerdict OurClient::Report(const LeasedShard& shard, ShardOutcome outcome,
                                const std::string& error) {
  const Later<ReportAndLeaseReply> answer =
      ReportAndLease({{.lease = shard.lease, .outcome = outcome, .error = error}}, 0);
  if (!answer.answered() || !answer.result().ok() || answer->verdicts.size() != 1) {
    ADD_FAILURE() << "a report of " << NameOf(replica_) << " got no verdict";
    return ReportVerdict::kLost;
  }
  return answer->verdicts.front();
}

std::vector<LeaseId> OurClient::Rejoin(std::vector<LeaseId> held) {
  const auto joined =
      master_.TryJoin({.replica = replica_, .incarnation = incarnation_, .held = std::move(held)});
  EXPECT_OK(joined);
  if (!joined.ok()) return {};
  incarnation_ = joined->incarnation;
  return joined->held;
}

}  // namespace edl::master
