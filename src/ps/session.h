#pragma once

#include <atomic>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "ps/histogram.h"
#include "ps/lane.h"
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
  Histogram pull_times;
  Histogram push_times;
};

// One worker's connection to a lane, after it was greeted. Confined to the lane's loop.
class Session {
 public:
  using OnEnd = wire::Connection::OnEnd;

  // All outlive it. Sends the welcome.
  Session(wire::EventLoop& loop, std::unique_ptr<wire::Stream> stream, wire::FrameLimits limits,
          Lane& lane, LaneSaver& saver, LaneCounters& counters, const wire::FrameHeader& hello,
          const wire::Welcome& welcome, const Clock& clock, OnEnd on_end);
  ~Session() { *alive_ = false; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // A push that waited for a save need not any more.
  void Resume() { connection_.Resume(); }

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

  const wire::FrameLimits limits_;
  Lane& lane_;
  LaneSaver& saver_;
  LaneCounters& counters_;
  const Clock& clock_;
  Lane::Names names_;
  bool saves_ = false;  // a save that was asked for here is under way
  // Shared with the saver, which may be done when the session is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  wire::Connection connection_;
};

}  // namespace edl::ps
