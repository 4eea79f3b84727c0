#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/status.h"
#include "job/ids.h"
#include "ps/lane.h"
#include "ps/lane_restorer.h"
#include "ps/lane_saver.h"
#include "wire/frame_connection.h"
#include "wire/messages.h"

namespace edl::ps {

// Counters of one lane for metrics. The lane's thread writes them; any thread may read them.
struct LaneCounters {
  std::atomic<uint64_t> pulls = 0;
  std::atomic<uint64_t> pushes = 0;
  std::atomic<uint64_t> rows_pulled = 0;
  std::atomic<uint64_t> rows_pushed = 0;
  std::atomic<uint64_t> refusals = 0;         // requests answered with an error
  std::atomic<uint64_t> waits_for_saves = 0;  // pushes and puts that had to wait
  std::atomic<uint64_t> saved_bytes = 0;      // written to parts
  std::atomic<uint64_t> restored_bytes = 0;   // read from parts
  Histogram pull_times;
  Histogram push_times;
};

// Which requests a lane may answer now. Shared by the sessions of the lane. Confined to its loop.
struct ServingState {
  job::PsIncarnation incarnation;
  bool managed = false;  // a master decides when the lane serves; otherwise it always does
  bool serves = true;
  bool may_push = true;        // the first checkpoint of the job exists, so shards may be opened
  job::PsEpoch ps_epoch;       // of the last Serve message
  job::PsEpoch restore_epoch;  // of the last Restore message
  bool leaving = false;        // after SIGTERM: changes wait for the successor
  // The master of a managed server has sent nothing for long: it may have started a successor. No
  // changes are accepted until it sends a request again.
  bool fenced = false;
  Time last_contact;                // when the master sent its last request
  bool released = false;            // the parameters are saved or not needed: the server may exit
  size_t opens_waiting = 0;         // Open requests that wait for may_push
  std::function<void()> on_change;  // called when waiting requests may be answered now
};

// What all sessions of a lane share. Outlives them.
struct SessionContext {
  EventLoop& loop;
  Lane& lane;
  LaneSaver& saver;
  LaneRestorer& restorer;
  ServingState& serving;
  LaneCounters& counters;
  const Clock& clock;
  wire::FrameLimits limits;
};

// A connection of a worker or of the master to a lane, after the handshake: answers its requests.
// Confined to the lane's loop.
class LaneSession {
 public:
  using OnEnd = wire::FrameConnection::OnEnd;

  // Answers `hello` with `welcome`, then serves the requests on `stream`.
  LaneSession(const SessionContext& context, std::unique_ptr<wire::Stream> stream,
              const wire::FrameHeader& hello, const wire::Welcome& welcome, OnEnd on_end);
  ~LaneSession();
  LaneSession(const LaneSession&) = delete;
  LaneSession& operator=(const LaneSession&) = delete;

  // Handles the request that waits, if any, again.
  void Resume() { connection_.Resume(); }
  // Closes the connection if it is a worker's. The worker connects again, and reaches the successor
  // if that has the address by then.
  void DropWorker() {
    if (is_worker_) connection_.Drop();
  }

  bool has_request_waiting() const { return connection_.holds_frame(); }
  size_t answer_bytes_waiting() const { return connection_.outgoing_bytes(); }

 private:
  wire::FrameConnection::Handled Handle(const wire::Frame& frame);
  Status Dispatch(const wire::Frame& frame);
  // Each Handle function sends the answer, unless it returns an error: then Handle() sends that.
  Status HandleDeclare(const wire::Frame& frame);
  Status HandlePut(const wire::Frame& frame);
  Status HandlePull(const wire::Frame& frame);
  Status HandleOpen(const wire::Frame& frame);
  Status HandlePush(const wire::Frame& frame);
  Status HandleSave(const wire::Frame& frame);
  Status HandleRestore(const wire::Frame& frame);
  Status HandleServe(const wire::Frame& frame);
  Status HandleState(const wire::Frame& frame);
  // Whether a request of that type must wait until the master permits it.
  bool MustWait(wire::MessageType type) const;
  void SetOpenWaits(bool waits);
  // Whether a request of that type must wait until a save has room in its buffer.
  bool WaitsForSave(wire::MessageType type) const;
  // FailedPrecondition: the lane was trained or is being saved, so it must not be replaced.
  Status CheckRestorable() const;
  // Declares the parameters of this connection again if the lane was restored meanwhile.
  Status RefreshDeclared();
  void OnSaved(const wire::FrameHeader& header, const Result<SaveReport>& saved);
  void OnRestored(const wire::FrameHeader& header, Result<LaneState> restored);
  // Notes that the master sent a request.
  void NoteMaster();

  const wire::FrameLimits limits_;
  Lane& lane_;
  LaneSaver& saver_;
  LaneRestorer& restorer_;
  ServingState& serving_;
  LaneCounters& counters_;
  const Clock& clock_;
  Declaration declaration_;      // of this connection
  DeclaredParameters declared_;  // its tables and tensors
  uint64_t generation_ = 0;      // of the lane when they were declared; 0: nothing is declared
  bool is_worker_ = false;       // it sent a request that only workers send
  bool open_waits_ = false;      // counted in serving_.opens_waiting
  bool saves_ = false;           // a save that this connection requested is running
  bool restores_ = false;        // a restore that this connection requested is running
  // Shared with callbacks of the saver and the restorer, which may run after the destructor.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  wire::FrameConnection connection_;
};

}  // namespace edl::ps
