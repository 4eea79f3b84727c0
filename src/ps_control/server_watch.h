#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "job/job_view.h"
#include "master/parameters/parameter_keeper.h"
#include "ps_client/ask.h"
#include "ps_client/link.h"
#include "wire/messages.h"

namespace edl::ps_control {

// Asks one parameter server who it is and how it is, twice a second, and tells it what it may do.
// It has a thread and connections of its own, which it keeps: a server whose machine is gone keeps
// nobody else waiting.
//
// Thread-safe.
class ServerWatch {
 public:
  struct Answers {
    std::function<void(uint64_t number, Result<master::ProbeReply>)> probed;
    std::function<void(const job::ServerView&)> state;
    std::function<void(int index, uint64_t incarnation)> alive;
    // After each round, answered or not. `progressed`: since the last one the server has saved or
    // restored something.
    std::function<void(bool progressed)> round;
  };
  using LinkTo = std::function<Result<ps_client::LinkOptions>(int index)>;

  // `clock` outlives it. There are `servers` servers.
  ServerWatch(int index, int servers, LinkTo link_to, Answers answers, const Clock& clock);
  ~ServerWatch();
  ServerWatch(const ServerWatch&) = delete;
  ServerWatch& operator=(const ServerWatch&) = delete;

  // Asks who it is as soon as it can; `number` is answered.
  void Probe(uint64_t number);
  // What the server is told from now on. `number` rises.
  void Serve(std::shared_ptr<const master::ServeAll> serve, uint64_t number);

 private:
  using Serving = std::shared_ptr<const master::ServeAll>;

  // What the last answers of one life said.
  struct Known {
    uint64_t incarnation = 0;
    uint64_t serve_told = 0;  // the number of the Serve that it has
    uint64_t rows_pulled = 0;
    uint64_t rows_pushed = 0;
    Time at;
  };

  void Run();
  void Round();
  // Who answers at the server's address. It has to be this server of this job.
  Result<wire::Welcome> AskWho();
  void JobSnapshot(const wire::Welcome& welcome, const Serving& serve, uint64_t number);
  Status TellServe(const master::ServeAll& serve, uint64_t number);
  Result<job::ServerView> AskState(uint64_t incarnation, Duration timeout);
  // Asks all lanes on connections that are kept, and makes them where there are none.
  Status ConnectLanes(const wire::Welcome& welcome);
  Result<std::vector<std::string>> AskLanes(wire::MessageType type, const std::string& meta,
                                            Duration timeout);

  const int index_;
  const int servers_;
  const LinkTo link_to_;
  const Answers answers_;
  const Clock& clock_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<uint64_t> probes_ GUARDED_BY(mutex_);
  Serving serve_ GUARDED_BY(mutex_);
  uint64_t serve_number_ GUARDED_BY(mutex_) = 0;
  std::atomic<bool> stop_ = false;

  // Below: confined to the thread.
  std::unique_ptr<ps_client::Link> control_link_;  // for Hello that only asks; null: not connected
  int hellos_ = 0;                                 // on that connection
  std::vector<std::unique_ptr<ps_client::Link>> lanes_;
  uint64_t lanes_incarnation_ = 0;
  Known known_;
  uint64_t progress_bytes_ = 0;
  uint64_t progress_incarnation_ = 0;
  bool progressed_ = false;
  std::thread thread_;
};

}  // namespace edl::ps_control
