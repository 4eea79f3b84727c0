#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "master/parts.h"

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

struct ExchangeRequest {
  uint64_t call = 0;
  Incarnation incarnation;
  uint64_t number = 0;
  uint64_t received = 0;
  std::vector<ShardReport> reports;
  std::string dataset;
  uint32_t lease_at_most = 0;
  std::chrono::milliseconds wait{0};
};
struct ExchangeReply {
  Answer answer = Answer::kNothing;
  std::vector<LeasedShard> shards;
  std::vector<Verdict> verdicts;
  uint64_t ps_epoch = 0;  // current epoch of the parameter servers; 0: they are not ours
};

struct Member {
  job::Role role = job::Role::kWorker;
  int index = 0;
  int64_t id = 0;
};
struct Membership {
  uint64_t number = 0;
  std::vector<Member> members;
};

// The logic of our own service. A call of an incarnation that the master has given up is answered
// Aborted: join again. Every Exchange carries a number, and the same number gets the same answer,
// over master restarts too.
//
// Confined: call it on the master's loop.
class OurDoor {
 public:
  static constexpr std::chrono::milliseconds kBeat{1000};
  static constexpr std::chrono::milliseconds kSilence{10000};
  static constexpr std::chrono::milliseconds kRejoin{2000};
  static constexpr uint32_t kMostShardsPerCall = 1024;

  explicit OurDoor(Parts parts) : parts_(parts) {}

  void Join(const JoinRequest& request, const Reply<JoinReply>& reply);
  void Leave(Incarnation incarnation, const Reply<Done>& reply);
  void Beat(Incarnation incarnation, const Reply<Done>& reply);
  void Exchange(const ExchangeRequest& request, Reply<ExchangeReply> reply);
  // The connection of a waiting Exchange is gone.
  void Abandon(uint64_t call) { parts_.dispatcher.DropWaiter(call, parts_.now); }

  // Membership goes to `push` now and after each change, until Unwatch of the same stream.
  // Aborted: join first.
  Status Watch(Incarnation incarnation, uint64_t stream,
               std::function<void(const Membership&)> push);
  void Unwatch(Incarnation incarnation, uint64_t stream);

  void Arrive(Incarnation incarnation, const std::string& name, std::chrono::milliseconds wait,
              const Reply<bool>& reply);
  // The process has trained `batches`, and may train one more once it is at most `ahead` before the
  // slowest; none: it has nothing to train.
  void Pace(Incarnation incarnation, std::optional<uint64_t> batches, uint64_t ahead,
            std::chrono::milliseconds wait, const Reply<bool>& reply);
  void AwaitEvent(const std::string& name, std::chrono::milliseconds wait,
                  const Reply<bool>& reply);
  void AcquireLock(Incarnation incarnation, const std::string& name, std::chrono::milliseconds wait,
                   const Reply<bool>& reply);
  void ReleaseLock(Incarnation incarnation, const std::string& name, const Reply<bool>& reply);

  // Gives up sessions that fell silent or lost their connection.
  void Tick();
  // Tells the watchers if the membership changed.
  void PushMembership();
  Membership CurrentMembership() const;

 private:
  struct Stream {
    uint64_t id = 0;
    std::function<void(const Membership&)> push;
  };

  Session* Hear(Incarnation incarnation);
  Status Unknown(Incarnation incarnation) const;
  void AnswerAgain(const StoredAnswer& stored, const Reply<ExchangeReply>& reply);
  void AskForShards(const ExchangeRequest& request, std::vector<Verdict> verdicts,
                    Reply<ExchangeReply> reply);

  Parts parts_;
  std::map<Incarnation, Stream> streams_;
  uint64_t pushed_ = 0;
};

}  // namespace edl::master
