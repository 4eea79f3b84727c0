#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "master/ledger/ledger.h"

namespace edl::master {

// The group of processes that average gradients among themselves, and their ranks. A change takes
// effect when every member of the current group has requested its rank. Remaining members keep
// their order and come before new processes, so a live rank 0 stays rank 0. Each change gets a new
// rendezvous number; numbers start at 1 and never repeat. The ledger keeps the group.
//
// Confined: call it on the master's loop.
class Rendezvous {
 public:
  struct Process {
    std::string host;
    int32_t local_id = 0;
    bool operator==(const Process&) const = default;
    auto operator<=>(const Process&) const = default;
  };
  struct Rank {
    int32_t rank = -1;  // -1: not a member
    int32_t size = 0;
    int32_t number = 0;  // of the rendezvous
    int32_t local_rank = 0;
    int32_t local_size = 1;
    int32_t cross_rank = 0;
    int32_t cross_size = 1;
    int32_t port = 0;
    std::string address;  // of rank 0
  };

  explicit Rendezvous(Ledger& ledger) : ledger_(ledger) {}
  Status Load(const std::string& saved);

  // A process wants to become a member. `port`: where it listens if it gets rank 0.
  void Start(const Process& process, int32_t port);
  void End(const Process& process);
  // Ends all processes of a host that was lost.
  void HostGone(const std::string& host);

  // The rank of a process in the current group.
  Rank RankOf(const Process& process);
  // Two barriers that clients poll. True when all members of rendezvous `number` have called. Also
  // true for an older number, so that the caller continues and requests its rank again.
  bool ResetSync(const Process& process, int32_t number);
  bool BarrierSync(const Process& process, int32_t number);

  void Flush();

 private:
  struct Member {
    Process process;
    int32_t port = 0;
  };
  bool IsMember(const std::vector<Member>& members, const Process& process) const;
  void InstallNext();
  // Computes all ranks of the current rendezvous.
  void ComputeRanks();
  bool AllIn(const std::set<Process>& called) const;

  Ledger& ledger_;  // outlives this
  std::vector<Member> current_;
  std::vector<Member> next_;
  // Ranks of the current rendezvous. Empty: not computed yet.
  std::map<Process, Rank> ranks_;
  std::map<std::string, int32_t> host_sizes_;
  bool pending_ = false;
  std::set<Process> asked_;
  std::set<Process> reset_;
  std::set<Process> barrier_;
  int32_t number_ = 0;
  bool dirty_ = false;
};

}  // namespace edl::master
