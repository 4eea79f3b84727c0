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
  Incarnation incarnation;  // 0: a new process
  std::vector<LeaseId> held;
  std::string process;
};
struct JoinReply {
  Incarnation incarnation;
  std::vector<LeaseId> held;
};

struct ReportAndLeaseRequest {
  uint64_t call = 0;
  Incarnation incarnation;
  uint64_t number = 0;
  uint64_t received = 0;
  std::vector<ShardReport> reports;
  std::string dataset;
  uint32_t lease_at_most = 0;
  std::chrono::milliseconds wait{0};
};
struct ReportAndLeaseReply {
  LeaseAnswer answer = LeaseAnswer::kNothing;
  std::vector<LeasedShard> shards;
  std::vector<ReportVerdict> verdicts;
  uint64_t ps_epoch = 0;  // current epoch of the parameter servers; 0: they are not ours
};

struct Member {
  job::Role role = job::Role::kWorker;
  int index = 0;
  int64_t id = 0;
};
struct Membership {
  // Watchers of more members than this are told how many there are, not who: the list of 10,000,
  // sent to 10,000, would be a gigabyte for each change.
  static constexpr size_t kMostListed = 512;

  uint64_t number = 0;
  int64_t count = 0;
  std::vector<Member> members;  // all, or none if they are too many
};

// The logic of our own service. A call of an incarnation that the master has given up is answered
// Aborted: join again. Every ReportAndLease carries a number, and the same number gets the same
// answer, over master restarts too.
//
// Confined: call it on the master's loop.
class MasterApi {
 public:
  // How often a session of a small job sends a heartbeat; those of a large one send fewer.
  static constexpr std::chrono::milliseconds kHeartbeat{1000};
  static constexpr size_t kHeartbeatsPerSecond = 2000;
  static constexpr std::chrono::milliseconds kLongestHeartbeat{5000};
  // A machine that vanished is noticed by its connection: its kernel answers no more. Silence on a
  // connection that lives means a process that is stopped, or starved, or holds Python's lock, so
  // it may take a while; where most are late, longer.
  // docs/adr/0019-lost-machines-and-silent-processes.md
  static constexpr std::chrono::milliseconds kSilence{30000};
  static constexpr std::chrono::milliseconds kLongestSilence{300000};
  // A lost connection is made anew in this time, or the session is lost.
  static constexpr std::chrono::milliseconds kRejoin{1200};
  static constexpr uint32_t kMostShardsPerCall = 1024;

  explicit MasterApi(const Context& context) : context_(context) {}

  // The sessions have been read from the ledger.
  void OnLoaded();

  void Join(const JoinRequest& request, const Reply<JoinReply>& reply);
  void Leave(Incarnation incarnation, const Reply<Done>& reply);
  void Heartbeat(Incarnation incarnation, const Reply<Done>& reply);
  std::chrono::milliseconds HeartbeatInterval() const;
  void ReportAndLease(const ReportAndLeaseRequest& request, Reply<ReportAndLeaseReply> reply);
  // The connection of a ReportAndLease is gone. False: the call does not wait; it has its answer.
  bool Abandon(uint64_t call) { return context_.dispatcher.DropWaiter(call, context_.now); }
  // Which replica a session belongs to. Aborted: join first.
  Result<ReplicaRef> ReplicaOf(Incarnation incarnation) const;

  // Membership goes to `push` now and after each change, until Unwatch of the same stream.
  // Aborted: join first.
  Status Watch(Incarnation incarnation, uint64_t stream,
               std::function<void(const Membership&)> push);
  void Unwatch(Incarnation incarnation, uint64_t stream);

  void Arrive(Incarnation incarnation, const std::string& name, std::chrono::milliseconds wait,
              const Reply<bool>& reply);
  // The process has trained `batches`, and may train one more once it is at most `ahead` before the
  // slowest; none: it has nothing to train.
  void ReportProgress(Incarnation incarnation, std::optional<uint64_t> batches, uint64_t ahead,
                      std::chrono::milliseconds wait, const Reply<bool>& reply);
  // Whoever waits for the event, or will, goes on.
  void Notify(const std::string& name) { context_.sync.Notify(name); }
  void AwaitEvent(const std::string& name, std::chrono::milliseconds wait,
                  const Reply<bool>& reply);
  void AcquireLock(Incarnation incarnation, const std::string& name, std::chrono::milliseconds wait,
                   const Reply<bool>& reply);
  void ReleaseLock(Incarnation incarnation, const std::string& name, const Reply<bool>& reply);

  // Gives up sessions that fell silent or lost their connection.
  void Tick();
  // Tells the watchers if the membership changed: a few at a time, so that no round of the loop is
  // long.
  void PushMembership();
  // With all members, however many.
  Membership CurrentMembership() const;

 private:
  static constexpr size_t kPushesAtOnce = 256;
  // Each loss moves all leases of a session. The next tick goes on with the others.
  static constexpr size_t kMostLossesATick = 256;

  struct Stream {
    uint64_t id = 0;
    std::function<void(const Membership&)> push;
  };

  std::shared_ptr<const Membership> ForWatchers();
  // Why the session is lost; nullopt while it is not, and then `next` is when to look again.
  std::optional<std::string> WhyLost(const Session& session, Time& next) const;
  void Lose(const Session& session, const std::string& why);

  Session* Hear(Incarnation incarnation);
  Status Unknown(Incarnation incarnation) const;
  void AnswerAgain(const StoredAnswer& stored, const Reply<ReportAndLeaseReply>& reply);
  void AskForShards(const ReportAndLeaseRequest& request, std::vector<ReportVerdict> verdicts,
                    Reply<ReportAndLeaseReply> reply);

  const Context context_;
  std::map<Incarnation, Stream> streams_;
  Deadlines<Incarnation> silence_checks_;
  HeartbeatGaps gaps_;
  std::shared_ptr<const Membership> newest_;  // for watchers
  uint64_t pushed_ = 0;                       // to the streams before next_push_
  Incarnation next_push_;
};

}  // namespace edl::master
