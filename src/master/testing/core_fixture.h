#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/testing/fake_clock.h"
#include "master/core.h"

namespace edl::master {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The answer of a call, which may arrive later. Copies share the answer.
template <typename T>
class Later {
 public:
  Reply<T> reply() const {
    return [answer = answer_](Result<T> result) { answer->emplace(std::move(result)); };
  }
  bool answered() const { return answer_->has_value(); }
  // Fails the test and returns an error if the call is still held.
  const Result<T>& result() const {
    static const Result<T> held = Internal("the call is still held");
    if (!answered()) ADD_FAILURE() << "the call is still held";
    return answered() ? **answer_ : held;
  }
  // Fails the test and returns an empty value if the call is still held or was answered with an
  // error.
  const T& operator*() const {
    static const T none{};
    const Result<T>& answer = result();
    if (answered() && !answer.ok()) ADD_FAILURE() << "the call failed: " << answer.status();
    return answer.ok() ? *answer : none;
  }
  const T* operator->() const { return &**this; }

 private:
  std::shared_ptr<std::optional<Result<T>>> answer_ = std::make_shared<std::optional<Result<T>>>();
};

inline ReplicaRef Worker(int64_t id) { return {job::Role::kWorker, id}; }
inline ReplicaRef Chief(int64_t id = 0) { return {job::Role::kChief, id}; }

inline constexpr const char* kJob = "iris";
inline constexpr const char* kData = "train";

// "iris-edljob-worker-0".
std::string NameOf(ReplicaRef replica);

// A job with workers only, with the defaults of the flags.
job::JobSpec WorkersOnly(int num_workers);
// A TensorFlow job: a chief, workers, ps and evaluators.
job::JobSpec TensorFlowJob(int num_workers, int num_ps, int num_evaluators);

// `shards` full shards of two batches of five records.
DatasetSpec Shards(int64_t shards, int64_t epochs = 1);

job::ExitCause Succeeded();
job::ExitCause Failed();
job::ExitCause Killed();
job::ExitCause OutOfMemory();

// A master's core over a ledger in memory, with a clock that the test moves. Every helper that
// calls the core commits, so all decided answers are sent when it returns.
//
// Confined to its test.
class CoreFixture {
 public:
  explicit CoreFixture(job::JobSpec spec = WorkersOnly(3));

  // The backend reports that it is synced; all replicas that the core then launches run.
  void StartReplicas();
  // The master crashes and is started again: changes that were not committed and held calls are
  // lost. The backend then reports the running replicas, unless `synced` is false.
  void CrashAndReload(bool synced = true);

  // Time passes while the loop runs and all live clients send heartbeats.
  void LetPass(Duration time);
  // Time passes while the loop is stalled.
  void Stall(Duration time);

  const Dataset& Register(const DatasetSpec& spec);
  // The view of a dataset.
  job::DatasetView Data(const std::string& name = kData) const;

  // At our API.
  Result<JoinReply> TryJoin(const JoinRequest& request);
  Status Heartbeat(Incarnation incarnation);
  // The client sends nothing any more; its process may still run.
  void FallSilent(Incarnation incarnation) { alive_.erase(incarnation); }
  void SendHeartbeatsFromNowOn(Incarnation incarnation) { alive_.insert(incarnation); }
  Later<ReportAndLeaseReply> ReportAndLease(ReportAndLeaseRequest request);
  uint64_t NextCall() { return next_call_++; }

  // At the compatibility API.
  struct HeldFetch {
    uint64_t call = 0;
    Later<std::optional<LeasedShard>> answer;
  };
  HeldFetch Fetch(ReplicaRef replica, const std::string& dataset = kData);
  // A fetch that must be answered with a shard at once.
  LeasedShard FetchShard(ReplicaRef replica, const std::string& dataset = kData);
  void ReportTask(const LeasedShard& shard, const std::string& error = "");

  // Events of the backend.
  void Pending(const std::string& name, const std::string& reason);
  void Running(const std::string& name, int64_t process_id = 1);
  // The cluster has lost or regained contact with the node of a running replica.
  void NodeOf(const std::string& name, bool lost);
  void Exit(const std::string& name, const job::ExitCause& cause,
            std::vector<std::string> last_lines = {});
  void Synced();
  void Log(ReplicaRef replica, std::string_view text);

  // Commands since the last Take.
  std::vector<LaunchCommand> TakeLaunches();
  std::vector<std::string> TakeStops();
  std::vector<std::string> TakeAcknowledged();

  Core& core() { return *core_; }
  const Core& core() const { return *core_; }
  Ledger& ledger() { return ledger_; }
  job::JobSpec& spec() { return spec_; }
  job::JobState state() const { return core_->state(); }
  job::ReplicaState StateOf(const std::string& name) const;
  void Tick();
  void Commit();

 private:
  void Make();

  job::JobSpec spec_;
  FakeClock clock_;
  Ledger ledger_;
  std::unique_ptr<Core> core_;
  std::set<Incarnation> alive_;
  uint64_t next_call_ = 1;
  std::vector<LaunchCommand> launches_;
  std::vector<std::string> stops_;
  std::vector<std::string> acknowledged_;
};

// A well-behaved client of our API: it numbers its calls and confirms the answers.
class OurClient {
 public:
  OurClient(CoreFixture& master, ReplicaRef replica);

  // The next call: reports, and requests at most so many shards of kData.
  Later<ReportAndLeaseReply> ReportAndLease(std::vector<ShardReport> reports, uint32_t at_most = 1,
                                            milliseconds wait = std::chrono::hours(1));
  // Repeats the last call, as after a lost connection.
  Later<ReportAndLeaseReply> Repeat();

  Later<ReportAndLeaseReply> Ask(uint32_t at_most = 1) { return ReportAndLease({}, at_most); }
  // Must be answered with shards at once.
  std::vector<LeasedShard> LeaseMany(uint32_t at_most);
  LeasedShard Lease() { return LeaseMany(1).front(); }
  // Confirms all answers so far.
  void Acknowledge() { ReportAndLease({}, 0); }
  ReportVerdict Report(const LeasedShard& shard, ShardOutcome outcome = ShardOutcome::kDone,
                       const std::string& error = "");

  Incarnation incarnation() const { return incarnation_; }
  ReplicaRef replica() const { return replica_; }
  // Joins again with the same incarnation and the leases `held`.
  std::vector<LeaseId> Rejoin(std::vector<LeaseId> held);

 private:
  CoreFixture& master_;
  const ReplicaRef replica_;
  Incarnation incarnation_;
  ReportAndLeaseRequest last_;
  uint64_t number_ = 0;
};

}  // namespace edl::master
