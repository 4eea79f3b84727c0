#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "ps_client/attempt.h"
#include "ps_client/link.h"
#include "ps_client/ready_set.h"

namespace edl::ps_client {

// How to connect to a server. kAuto: through shared memory if the same server answers there,
// otherwise TCP. It is decided for each connection, because a restarted server may run on another
// machine.
enum class Transport { kTcp, kSharedMemory, kAuto };

struct ChannelOptions {
  LinkOptions link;
  Transport transport = Transport::kTcp;
  // Requests fail when none of them makes progress for this long.
  Duration timeout = std::chrono::minutes(10);
  // A connection on which an answer is due and nothing arrives for this long is checked by a second
  // connection.
  Duration silence = std::chrono::seconds(10);
  // The expected server. If another incarnation answers, the server was restarted and lacks its
  // parameters: requests fail with Aborted once. 0: any incarnation is accepted, because a master
  // restores it.
  job::PsIncarnation incarnation;
};

// Keeps a client connected to one lane. Every request is answered or fails within the timeout,
// whatever the server does:
// - A lost connection is replaced, with backoff, and requests are sent again.
// - If an answer is due and the server is silent, a second connection checks it. If the same server
//   answers there, it delays the request on purpose: the first connection stays, and the third time
//   the second connection replaces it. If nobody or another server answers, the first connection
//   counts as lost.
// docs/formats/wire.md has the rules. Confined.
class LaneChannel {
 public:
  // `set` and `clock` outlive it.
  LaneChannel(ChannelOptions options, size_t lane, const ReadySet& set, const Clock& clock);

  // Like Link::Send. Only Move() sends and receives.
  void Send(LinkRequest& request);
  void Declare(std::string text) { link_.Declare(std::move(text)); }
  // Closes the connection, and waits for `pause` before it connects again: another server is wanted
  // than the one that answered.
  void Drop(Duration pause, const Status& why);

  // Makes as much progress as possible without blocking.
  void Move();
  // Call this when a descriptor of this lane is ready, before Move().
  void OnReady();
  // When to call Move() even if no descriptor is ready. Time::max(): never.
  Time next_move() const { return next_move_; }

  const LinkOptions& to() const { return options_.link; }
  // How many times another server than the expected one answered.
  uint64_t restarts() const { return restarts_; }
  // The expected server; 0: any.
  job::PsIncarnation expected() const { return options_.incarnation; }
  void Expect(job::PsIncarnation incarnation) { options_.incarnation = incarnation; }
  bool uses_shared_memory() const { return link_.connected() && is_ring_; }

 private:
  enum class Purpose { kConnect, kUpgrade, kCheck };

  Status Step(Time now);
  Status StartAttempt(Purpose purpose, bool ring, Time now);
  Status MoveAttempt(Time now);
  // The attempt has received a Welcome.
  Status OnWelcome(Time now);
  Status OnConnected(Time now);
  void Use(Attempt& attempt, bool is_ring, Time now);
  void EndAttempt();
  void OnFailure(const Status& why, Time now);
  void NoteProgress(Time now);
  void CheckTimeout(Time now);
  // Fails all requests with `why`.
  void GiveUp(Status why);
  Status Watch();
  void Plan(Time now);
  Duration AttemptLimit() const;
  std::string Name() const;

  ChannelOptions options_;
  const Clock& clock_;
  Link link_;
  bool is_ring_ = false;  // link_ is shared memory
  std::unique_ptr<Attempt> attempt_;
  Purpose purpose_ = Purpose::kConnect;
  std::unique_ptr<Attempt> greeted_;  // over TCP, while shared memory is tried
  ReadySet::Watch link_watch_;
  ReadySet::Watch attempt_watch_;
  uint64_t traffic_ = 0;
  uint64_t progress_ = 0;
  Time heard_at_{};     // when link_ last had traffic, or a check succeeded
  Time progress_at_{};  // when a request last made progress
  Time next_attempt_{};
  Time next_move_ = Time::max();
  std::optional<Time> lost_since_;
  Status last_failure_;
  size_t attempts_ = 0;
  int failures_ = 0;  // of consecutive attempts
  int checks_ = 0;    // since link_ was last heard
  uint64_t restarts_ = 0;
  std::minstd_rand random_;
};

}  // namespace edl::ps_client
