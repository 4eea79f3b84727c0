#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "master/context.h"
#include "master/deadlines.h"
#include "master/sessions/heartbeat_gaps.h"

namespace edl::master {

struct JoinRequest {
  ReplicaRef replica;
  Incarnation incarnation;    // 0: a new process
  std::vector<LeaseId> held;  // leases that the process still holds
  std::string process;
};
struct JoinReply {
  Incarnation incarnation;    // differs from the request's if that session has ended
  std::vector<LeaseId> held;  // the leases of the request that are still open
};

struct ReportAndLeaseRequest {
  uint64_t call = 0;  // see Waiter
  Incarnation incarnation;
  uint64_t number = 0;    // the caller counts its calls from 1
  uint64_t received = 0;  // the caller has received the answers of all calls up to this number
  std::vector<ShardReport> reports;
  std::string dataset;
  uint32_t lease_at_most = 0;
  std::chrono::milliseconds wait{0};
};
struct ReportAndLeaseReply {
  LeaseAnswer answer = LeaseAnswer::kNothing;
  std::vector<LeasedShard> shards;
  std::vector<ReportVerdict> verdicts;
  PsEpoch ps_epoch;          // current ps epoch; 0: the job has no parameter servers of ours
  std::string next_dataset;  // a job with a model: the dataset to request next
};

struct Member {
  job::Role role = job::Role::kWorker;
  int index = 0;
  int64_t id = 0;
};
struct Membership {
  // Above this number, watchers get the count without the list. The list of 10,000 members, sent
  // to 10,000 watchers, would be a gigabyte for each change.
  static constexpr size_t kMostListed = 512;

  uint64_t number = 0;
  int64_t count = 0;
  std::vector<Member> members;  // all; empty if there are more than kMostListed
};

// The logic of our own API. A call of an incarnation whose session has ended is answered with
// Aborted: the process has to join again. Each ReportAndLease has a number, and a repeated number
// gets the same answer, also after a restart of the master.
//
// Confined: call it on the master's loop.
class MasterApi {
 public:
  // The heartbeat interval of small jobs. The interval grows with the number of sessions, so that
  // the master gets at most kHeartbeatsPerSecond, up to kLongestHeartbeat.
  static constexpr std::chrono::milliseconds kHeartbeat{1000};
  static constexpr size_t kHeartbeatsPerSecond = 2000;
  static constexpr std::chrono::milliseconds kLongestHeartbeat{5000};
  // A lost machine is noticed by its connection, because its kernel does not answer. Silence on an
  // intact connection means that the process is stopped, starved of CPU or holds Python's lock, so
  // it is allowed more time; if most sessions are late, longer.
  // docs/adr/0019-lost-machines-and-silent-processes.md
  static constexpr std::chrono::milliseconds kSilence{30000};
  static constexpr std::chrono::milliseconds kLongestSilence{300000};
  // A session is lost if its process does not reconnect within this time.
  static constexpr std::chrono::milliseconds kRejoin{1200};
  // The same after a restart of the master, for external replicas: no backend reports which of them
  // have ended meanwhile.
  static constexpr std::chrono::milliseconds kRejoinAfterRestart{10000};
  static constexpr uint32_t kMostShardsPerCall = 1024;

  explicit MasterApi(const Context& context) : context_(context) {}

  // Call it after the sessions were read from the ledger.
  void OnLoaded();

  void Join(const JoinRequest& request, const Reply<JoinReply>& reply);
  void Leave(Incarnation incarnation, const Reply<Done>& reply);
  void Heartbeat(Incarnation incarnation, const Reply<Done>& reply);
  std::chrono::milliseconds HeartbeatInterval() const;
  void ReportAndLease(const ReportAndLeaseRequest& request, Reply<ReportAndLeaseReply> reply);
  // The connection of a ReportAndLease was closed. False: the call does not wait; it was answered.
  bool Abandon(uint64_t call) { return context_.dispatcher.DropWaiter(call, context_.now); }
  // The replica that a session belongs to. Aborted: join first.
  Result<ReplicaRef> ReplicaOf(Incarnation incarnation) const;

  // Calls `push` with the membership now and after each change, until Unwatch of the same stream.
  // Aborted: join first.
  Status Watch(Incarnation incarnation, uint64_t stream,
               std::function<void(const Membership&)> push);
  void Unwatch(Incarnation incarnation, uint64_t stream);

  void Arrive(Incarnation incarnation, const std::string& name, std::chrono::milliseconds wait,
              const Reply<bool>& reply);
  // Bounded staleness: the process has trained `batches`. Replies true when it is at most `ahead`
  // batches ahead of the slowest process, false after `wait`. nullopt: it has nothing to train.
  void ReportProgress(Incarnation incarnation, std::optional<uint64_t> batches, uint64_t ahead,
                      std::chrono::milliseconds wait, const Reply<bool>& reply);
  // Sets an event: present and future calls of AwaitEvent are answered with true.
  void Notify(const std::string& name) { context_.sync.Notify(name); }
  void AwaitEvent(const std::string& name, std::chrono::milliseconds wait,
                  const Reply<bool>& reply);
  void AcquireLock(Incarnation incarnation, const std::string& name, std::chrono::milliseconds wait,
                   const Reply<bool>& reply);
  void ReleaseLock(Incarnation incarnation, const std::string& name, const Reply<bool>& reply);

  // Closes sessions that are silent or have lost their connection.
  void Tick();
  // Pushes a changed membership to watchers, a few per call, so that each round of the loop is
  // short.
  void PushMembership();
  // Lists all members, however many.
  Membership CurrentMembership() const;

 private:
  static constexpr size_t kPushesAtOnce = 256;
  // Limits the work of one tick, because each loss moves all leases of a session. The next tick
  // continues.
  static constexpr size_t kMostLossesATick = 256;

  struct Stream {
    uint64_t id = 0;
    std::function<void(const Membership&)> push;
  };

  std::shared_ptr<const Membership> ForWatchers();
  // Why the session is lost. nullopt: it is not lost; `next` is the time of the next check.
  std::optional<std::string> WhyLost(const Session& session, Time& next) const;
  void Lose(const Session& session, const std::string& why);

  // Finds the session of a caller and notes the time of the call. Null: the session has ended.
  Session* OnCallOf(Incarnation incarnation);
  static Status UnknownIncarnation(Incarnation incarnation);
  void AnswerAgain(const StoredAnswer& stored, const Reply<ReportAndLeaseReply>& reply);
  void RequestShards(const ReportAndLeaseRequest& request, std::vector<ReportVerdict> verdicts,
                     Reply<ReportAndLeaseReply> reply);

  const Context context_;
  std::map<Incarnation, Stream> streams_;
  Deadlines<Incarnation> silence_checks_;
  HeartbeatGaps gaps_;
  std::shared_ptr<const Membership> newest_;  // for watchers
  uint64_t pushed_ = 0;  // the membership that the streams before next_push_ have got
  Incarnation next_push_;
};

}  // namespace edl::master
