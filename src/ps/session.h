#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "ps/histogram.h"
#include "ps/lane.h"
#include "ps/lane_restorer.h"
#include "ps/lane_saver.h"
#include "wire/connection.h"
#include "wire/messages.h"

namespace edl::ps {

// What lanes count for whoever watches the server. The lane's thread raises, any thread reads.
struct LaneCounters {
  std::atomic<uint64_t> pulls = 0;
  std::atomic<uint64_t> pushes = 0;
  std::atomic<uint64_t> rows_pulled = 0;
  std::atomic<uint64_t> rows_pushed = 0;
  std::atomic<uint64_t> refusals = 0;
  std::atomic<uint64_t> waits_for_saves = 0;  // of pushes
  std::atomic<uint64_t> saved_bytes = 0;      // written to parts
  std::atomic<uint64_t> restored_bytes = 0;   // read from parts
  Histogram pull_times;
  Histogram push_times;
};

// Whether a lane serves, and in which epoch of the job's servers. Confined to the lane's loop.
struct LaneService {
  uint64_t incarnation = 0;  // of the server
  bool managed = false;      // a master says when it serves; else it always does
  bool serves = true;
  bool may_push = true;
  uint64_t ps_epoch = 0;
  uint64_t restore_epoch = 0;  // of the last Restore
  bool leaving = false;        // nothing changes any more
  // A managed server that its master did not ask for long may have been given up, and a successor
  // may serve: nothing changes until the master asks again.
  bool fenced = false;
  Time asked;             // when the master asked last
  bool released = false;  // and nobody needs what it has
  size_t opens_waiting = 0;
  std::function<void()> on_change;  // those who wait are to be looked at again
};

// What all sessions of a lane share. Outlives them.
struct SessionContext {
  EventLoop& loop;
  Lane& lane;
  LaneSaver& saver;
  LaneRestorer& restorer;
  LaneService& service;
  LaneCounters& counters;
  const Clock& clock;
  wire::FrameLimits limits;
};

// One worker's connection to a lane, after it was greeted. Confined to the lane's loop.
class Session {
 public:
  using OnEnd = wire::Connection::OnEnd;

  // Answers `hello` with `welcome`, then serves the requests on `stream`.
  Session(const SessionContext& context, std::unique_ptr<wire::Stream> stream,
          const wire::FrameHeader& hello, const wire::Welcome& welcome, OnEnd on_end);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // What waited for a save, or for the master, need not any more.
  void Resume() { connection_.Resume(); }
  // Ends the connection of a worker, who connects anew: to whoever has the address by then.
  void DropWorker() {
    if (is_worker_) connection_.Drop();
  }

  bool has_request_waiting() const { return connection_.holds_frame(); }
  size_t answer_bytes_waiting() const { return connection_.outgoing_bytes(); }

 private:
  wire::Connection::Taken Handle(const wire::Frame& frame);
  Status Dispatch(const wire::Frame& frame);
  // Answers by itself unless it fails.
  Status HandleDeclare(const wire::Frame& frame);
  Status HandlePut(const wire::Frame& frame);
  Status HandlePull(const wire::Frame& frame);
  Status HandleOpen(const wire::Frame& frame);
  Status HandlePush(const wire::Frame& frame);
  Status HandleSave(const wire::Frame& frame);
  Status HandleRestore(const wire::Frame& frame);
  Status HandleServe(const wire::Frame& frame);
  Status HandleState(const wire::Frame& frame);
  // Whether a message of that type has to wait for the master's word.
  bool MustWait(wire::MessageType type) const;
  void SetOpenWaits(bool waits);
  // Whether a push has to wait for a save.
  bool WaitsForSave(wire::MessageType type) const;
  // FailedPrecondition: what the lane has may not be replaced now.
  Status CheckRestorable() const;
  // Declares the parameters of this connection again if the lane was restored meanwhile.
  Status RefreshDeclared();
  void OnSaved(const wire::FrameHeader& header, const Result<SaveReport>& saved);
  void OnRestored(const wire::FrameHeader& header, Result<LaneState> restored);
  // The master asked.
  void Unfence();

  const wire::FrameLimits limits_;
  Lane& lane_;
  LaneSaver& saver_;
  LaneRestorer& restorer_;
  LaneService& service_;
  LaneCounters& counters_;
  const Clock& clock_;
  Declaration declaration_;      // of this connection
  DeclaredParameters declared_;  // its tables and tensors
  uint64_t generation_ = 0;      // of the lane when they were declared; 0: nothing is declared
  bool is_worker_ = false;       // and no master
  bool open_waits_ = false;
  bool saves_ = false;     // a save that was asked for here is under way
  bool restores_ = false;  // a restore that was asked for here is
  // Shared with the saver and the restorer, which may be done when the session is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  wire::Connection connection_;
};

}  // namespace edl::ps
