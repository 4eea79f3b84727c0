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

// How a server is reached. kAuto: shared memory where the same server answers there, else TCP; it
// is decided anew at each connection, because a server's successor may run on another machine.
enum class Transport { kTcp, kSharedMemory, kAuto };

struct ChannelOptions {
  LinkOptions link;
  Transport transport = Transport::kTcp;
  // Requests fail when none of them makes progress for so long.
  Duration timeout = std::chrono::minutes(10);
  // A connection that owes an answer and is silent for so long is checked by a second one.
  Duration silence = std::chrono::seconds(10);
  // The server that is expected. Another one is a restarted server, which lacks what the expected
  // one had: requests fail with Aborted once. 0: any server is as good (a master restores it).
  uint64_t incarnation = 0;
};

// Keeps the connection to one lane. Requests that were sent are answered or fail with a reason
// within the timeout, whatever the server does:
// - a connection that ends or breaks is made again, with backoff, and requests are sent again;
// - a server that is silent while it owes an answer is asked on a second connection. If the same
//   server answers there, it keeps the request waiting on purpose, and so the first connection
//   stays (the third time the new one takes its place). If nobody or another server answers, the
//   first connection is given up.
// docs/formats/wire.md has the rules. Confined.
class LaneChannel {
 public:
  // `set` and `clock` outlive it.
  LaneChannel(ChannelOptions options, size_t lane, const ReadySet& set, const Clock& clock);

  // Requests as in Link. They move in Move() alone.
  void Send(Request& request);
  void Declare(std::string text) { link_.Declare(std::move(text)); }
  // Closes the connection and waits for `pause` before the next one: the server behind it is not
  // the one that is wanted.
  void Drop(Duration pause, const Status& why);

  // Does what can be done now without waiting.
  void Move();
  // Call it when a descriptor of this lane is ready, before Move().
  void OnReady();
  // When Move() is to be called although nothing is ready; Time::max(): never.
  Time next_move() const { return next_move_; }

  const LinkOptions& to() const { return options_.link; }
  // How many times the server was found to be another one than expected.
  uint64_t restarts() const { return restarts_; }
  // The server that is expected now; 0: any.
  uint64_t expected() const { return options_.incarnation; }
  void Expect(uint64_t incarnation) { options_.incarnation = incarnation; }
  bool uses_shared_memory() const { return link_.connected() && is_ring_; }

 private:
  enum class Purpose { kConnect, kUpgrade, kCheck };

  Status Step(Time now);
  Status StartAttempt(Purpose purpose, bool ring, Time now);
  Status MoveAttempt(Time now);
  // The attempt has met its server.
  Status OnWelcome(Time now);
  Status OnConnected(Time now);
  void Use(Attempt& attempt, bool is_ring, Time now);
  void EndAttempt();
  void OnFailure(const Status& why, Time now);
  void NoteProgress(Time now);
  void CheckTimeout(Time now);
  // Fails all requests.
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
  Time heard_at_{};     // when link_ had traffic last, or was found alive
  Time progress_at_{};  // when a request made progress last
  Time next_attempt_{};
  Time next_move_ = Time::max();
  std::optional<Time> lost_since_;
  Status last_failure_;
  size_t attempts_ = 0;
  int failures_ = 0;  // in a row
  int checks_ = 0;    // of this silence
  uint64_t restarts_ = 0;
  std::minstd_rand random_;
};

}  // namespace edl::ps_client
