#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "job/job_view.h"
#include "master/parameters/parameter_keeper.h"
#include "ps_client/ask.h"
#include "ps_control/server_channel.h"
#include "wire/messages.h"

namespace edl::ps_control {

// Calls a function once, after a delay, on the thread of the PsControllerCore.
using CallAfter = std::function<void(Duration delay, std::function<void()> call)>;

// Checks that the process that answered is server `server` of `servers`. Otherwise Unavailable: the
// address belongs to another process for now.
Status CheckIdentity(const wire::Welcome& welcome, int server, int servers);

// Watches one parameter server in rounds, twice a second: asks for its identity, has it serve as
// the master last decided, and asks for the state of its lanes. A probe and a new Serve start the
// next round at once.
//
// Confined to the PsControllerCore that owns it.
class ServerWatch {
 public:
  static constexpr Duration kRoundInterval = std::chrono::milliseconds(500);
  static constexpr Duration kTimeout = std::chrono::seconds(5);
  // The timeout of State before the master lets the server serve: the server may be starting or
  // restoring, and the next round must not wait for that.
  static constexpr Duration kStateTimeoutBeforeServe = std::chrono::milliseconds(500);

  struct Events {
    std::function<void(master::PsCommandId number, Result<master::ProbeReply>)> probed;
    std::function<void(const job::ServerView&)> state;
    // The process answered. Its lanes may still be too busy to report their state.
    std::function<void(int index, job::PsIncarnation incarnation)> alive;
    // A round is over. `progressed`: the server has saved or restored something since the last
    // round, or it is a new process.
    std::function<void(bool progressed)> round;
  };

  // Watches server `index` of `servers`. `channel` and `clock` outlive this object.
  ServerWatch(int index, int servers, ServerChannel& channel, Events events, CallAfter call_after,
              const Clock& clock);

  void Start() { Round(); }
  // Asks for the server's identity on a new connection, and answers `number`.
  void Probe(master::PsCommandId number);
  // Sends this Serve to the server from now on. `number` rises with every call.
  void Serve(std::shared_ptr<const master::ServeAll> serve, uint64_t number);

 private:
  // What the last answers of one incarnation said.
  struct Known {
    job::PsIncarnation incarnation;
    uint64_t serve_number = 0;  // of the Serve that all its lanes have acknowledged
    uint64_t rows_pulled = 0;
    uint64_t rows_pushed = 0;
    Time at;
  };
  using OnAnswers = std::function<void(const std::vector<ps_client::LaneAnswer>&)>;

  void RoundNow();
  void Round();
  void EndRound();
  void OnWelcome(const Result<wire::Welcome>& welcome);
  void SendServe(const wire::Welcome& welcome);
  void AskState(const wire::Welcome& welcome);
  Result<job::ServerView> Combine(const std::vector<ps_client::LaneAnswer>& answers);
  // Sends `meta` to all lanes. Any failure ends the round, and so does an answer of another
  // incarnation.
  void AskLanes(const wire::Welcome& welcome, wire::MessageType type, const std::string& meta,
                Duration timeout, OnAnswers done);

  const int index_;
  const int servers_;
  ServerChannel& channel_;
  const Events events_;
  const CallAfter call_after_;
  const Clock& clock_;

  std::vector<master::PsCommandId> probes_;
  // Shared by the watches of all servers.
  std::shared_ptr<const master::ServeAll> serve_;
  uint64_t serve_number_ = 0;

  bool in_round_ = false;
  bool round_wanted_ = false;  // right after the present one
  uint64_t timer_ = 0;         // the newest; older ones do nothing
  // The round that is under way:
  std::vector<master::PsCommandId> round_probes_;
  std::shared_ptr<const master::ServeAll> round_serve_;
  uint64_t round_serve_number_ = 0;
  bool progressed_ = false;

  Known known_;
  uint64_t progress_bytes_ = 0;
  job::PsIncarnation progress_incarnation_;
};

}  // namespace edl::ps_control
