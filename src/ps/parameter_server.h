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
#include "base/histogram.h"
#include "base/status.h"
#include "job/ids.h"
#include "ps/lane.h"
#include "ps/lane_session.h"
#include "ps/timer.h"
#include "wire/frame.h"
#include "wire/frame_connection.h"
#include "wire/messages.h"

namespace edl::ps {

struct ServerOptions {
  std::string host;  // the address to listen on; empty: all addresses
  uint16_t port = 0;
  std::string token;  // callers must send it; empty: no token is needed
  size_t lanes = 1;
  size_t index = 0;    // of this server among the servers of the job
  size_t servers = 1;  // of the job
  job::PsIncarnation incarnation;
  // The server serves workers only after a master sent Serve, docs/formats/wire.md.
  bool managed = false;
  wire::FrameLimits limits;
  // Limit of the chunks that wait for the disk during a save, for all lanes together.
  size_t save_buffer_bytes = size_t{256} << 20;
  // Folders below which callers may save and restore. Empty: anywhere if there is a token,
  // otherwise nowhere.
  std::vector<std::filesystem::path> checkpoint_roots = {};
  // A managed server accepts no changes while its master has sent no request for this long. 0: it
  // always accepts them.
  Duration fence_after = std::chrono::seconds(10);
};

// Figures of one lane, for metrics.
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

// A parameter server: lanes that answer requests over TCP, and over shared memory on this host. One
// thread accepts connections and reads their Hello, which names a lane. From then on the lane's
// thread serves the connection. Thread-safe.
class ParameterServer {
 public:
  // Starts to listen and to serve. InvalidArgument: the numbers of lanes and servers are invalid.
  // Other errors: the server cannot listen on the port. `clock` outlives the server.
  static Result<std::unique_ptr<ParameterServer>> Start(ServerOptions options, const Clock& clock);
  ~ParameterServer();
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  uint16_t port() const { return port_; }
  // The figures of each lane. REQUIRES: not called on a lane's thread.
  std::vector<LaneStats> State();

  // Prepares the end of a managed server: from now on pushes wait for its successor, so the next
  // checkpoint contains everything that was applied.
  void Leave();
  // Whether the server may exit: its parameters were saved after Leave(), or are not needed.
  bool IsReleased();

 private:
  // One lane with its thread and its sessions, which are confined to that thread.
  struct LaneThread;
  // A connection that has not named a lane yet.
  struct PendingConnection;

  ParameterServer(ServerOptions options, const Clock& clock, uint16_t port, FileDescriptor tcp,
                  FileDescriptor unix, std::vector<std::unique_ptr<EventLoop>> loops);

  // Calls `take` with each connection that waits on the listener.
  template <typename Take>
  void AcceptAll(const FileDescriptor& listener, const Take& take);
  void AcceptTcp();
  void AcceptRing();
  // Stops accepting for a moment: the process has no file descriptors left.
  void PauseAccepting(const Status& why);
  void SetAccepting(bool accepting);
  Status BeginAccepting();
  void Admit(std::unique_ptr<wire::Stream> stream);
  void Handshake(PendingConnection& pending, const wire::Frame& frame);
  Status Check(const wire::Hello& hello) const;
  // Logs at most once per second, because everyone who reaches the port can cause it.
  void LogRefused(std::string_view what);
  void Forget(uint64_t pending);

  const ServerOptions options_;
  const Clock& clock_;
  const uint16_t port_;
  const FileDescriptor tcp_;
  const FileDescriptor unix_;  // not valid: the socket name was in use
  LoopThread disk_;            // writes the chunks of saves
  std::vector<std::unique_ptr<LaneThread>> lanes_;
  // Below: confined to the accepting thread.
  std::map<uint64_t, std::unique_ptr<PendingConnection>> pending_;  // by number, the oldest first
  uint64_t last_pending_ = 0;
  std::list<FileDescriptor> rings_;  // connections whose shared memory has not arrived yet
  std::unique_ptr<Timer> resume_;    // starts accepting again
  bool accepting_ = false;
  Time logged_;              // when a refusal was logged last
  uint64_t not_logged_ = 0;  // refusals since then
  LoopThread acceptor_;
};

}  // namespace edl::ps
