#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/file.h"
#include "base/status.h"
#include "ps/histogram.h"
#include "ps/lane.h"
#include "ps/session.h"
#include "ps/timer.h"
#include "wire/connection.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace edl::ps {

struct ServerOptions {
  std::string host;  // to listen on; empty: all addresses
  uint16_t port = 0;
  std::string token;  // that callers must know; empty: none
  size_t lanes = 1;
  // This server's place among those of the job.
  size_t index = 0;
  size_t servers = 1;
  uint64_t incarnation = 0;
  // It serves only once a master says so, and what it says: docs/formats/wire.md, Serve.
  bool managed = false;
  wire::FrameLimits limits;
  // What all lanes that are being saved may have waiting for the disk together.
  size_t save_buffer_bytes = size_t{256} << 20;
  // Folders below which callers may save and restore. None: anywhere if there is a token, and
  // nowhere if there is none.
  std::vector<std::filesystem::path> checkpoint_roots = {};
  // A managed server that its master did not ask for so long takes no pushes until it asks again.
  // 0: never.
  Duration fence_after = std::chrono::seconds(10);
};

// What one lane has and did.
struct LaneStats {
  uint64_t rows = 0;
  uint64_t bytes = 0;
  uint64_t evicted = 0;
  uint64_t version = 0;
  uint64_t requests_waiting = 0;
  uint64_t answer_bytes_waiting = 0;
  uint64_t least_contributed = 0;
  uint64_t most_contributed = 0;
  uint64_t pulls = 0;
  uint64_t pushes = 0;
  uint64_t rows_pulled = 0;
  uint64_t rows_pushed = 0;
  uint64_t refusals = 0;
  uint64_t refused_batches = 0;
  uint64_t waits_for_saves = 0;
  uint64_t connections = 0;
  Histogram::Reading pull_times;
  Histogram::Reading push_times;
};

// A parameter server: lanes that answer workers over TCP, and over shared memory on this host. One
// thread takes connections and hears their Hello, which tells the lane that they are for; from then
// on they are that lane's. Thread-safe.
class Server {
 public:
  // InvalidArgument: options that cannot be. Others: the port cannot be had.
  // `clock` outlives it.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options, const Clock& clock);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const { return port_; }
  // Asks every lane. REQUIRES: not called on a lane's thread.
  std::vector<LaneStats> State();

  // A managed server's end: pushes wait from now on, for its successor, so that what is saved next
  // is all that it ever had.
  void Leave();
  // Whether what it has was saved since, or nobody needs it.
  bool IsReleased();

 private:
  // One lane with its thread and its connections, which are confined to that thread.
  struct Worker;
  // A connection that has not said which lane it is for.
  struct PendingConnection;

  Server(ServerOptions options, const Clock& clock, uint16_t port, FileDescriptor tcp,
         FileDescriptor unix, std::vector<std::unique_ptr<EventLoop>> loops);

  // Calls `take` with each connection that waits at the listener.
  template <typename Take>
  void AcceptAll(const FileDescriptor& listener, const Take& take);
  void AcceptTcp();
  void AcceptRing();
  // Takes no connections for a moment: the process has no descriptors left.
  void PauseAccepting(const Status& why);
  void SetAccepting(bool accepting);
  Status BeginAccepting();
  void Admit(std::unique_ptr<wire::Stream> stream);
  void Handshake(PendingConnection& pending, const wire::Frame& frame);
  Status Check(const wire::Hello& hello) const;
  // Logs at most once in a second, for whoever reaches the port may cause it.
  void LogRefused(std::string_view what);
  void Forget(uint64_t pending);

  const ServerOptions options_;
  const Clock& clock_;
  const uint16_t port_;
  const FileDescriptor tcp_;
  const FileDescriptor unix_;  // not valid: the name was not to be had
  LoopThread disk_;            // writes what lanes save
  std::vector<std::unique_ptr<Worker>> workers_;
  // Below: confined to the thread that takes connections.
  std::map<uint64_t, std::unique_ptr<PendingConnection>> pending_;  // by number, the oldest first
  uint64_t last_pending_ = 0;
  std::list<FileDescriptor> rings_;  // whose memory has not come yet
  std::unique_ptr<Timer> resume_;    // takes connections again
  bool accepting_ = false;
  Time logged_;              // when a refusal was
  uint64_t not_logged_ = 0;  // refusals since
  LoopThread acceptor_;
};

}  // namespace edl::ps
