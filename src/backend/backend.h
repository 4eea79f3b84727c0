#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "job/replica.h"
#include "job/role.h"

namespace edl::backend {

// A piece of a replica's output. Offsets count from the replica's first byte, whatever rotation
// has thrown away since.
struct LogPiece {
  std::string text;
  int64_t next_offset = 0;  // where to go on
};

// A place where replicas run. Every call is idempotent by replica name, for the master repeats
// calls after its own restart. Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  // Starts a replica. Ok if that name already runs or ran; its events tell the rest.
  virtual Status Launch(const job::ReplicaSpec& spec) = 0;

  // Asks the replica to end (SIGTERM) and ends it after `grace`. Returns at once; the exit comes
  // as an event. Ok if there is none.
  virtual Status Stop(const std::string& name, std::chrono::milliseconds grace) = 0;

  // Calls `on_event` for every replica there is, then once with kSynced, then for every change, in
  // order, on a thread of the backend. A kExited event is told again to each new watcher until it
  // is acknowledged. At most one watcher; the next one replaces it.
  virtual void Watch(std::function<void(const job::ReplicaEvent&)> on_event) = 0;

  // The master has written down this replica's exit: forget it. Ok if there is none.
  virtual Status Acknowledge(const std::string& name) = 0;

  // Output from `offset` (negative: that many bytes from the end), at most `at_most` bytes.
  // NotFound: no such replica ever.
  virtual Result<LogPiece> Logs(const std::string& name, int64_t offset, int64_t at_most) = 0;

  // The end of its output: at most so many lines, and bytes. A backend that can reads no more than
  // that.
  virtual Result<std::string> Tail(const std::string& name, size_t /*most_lines*/,
                                   int64_t most_bytes) {
    EDL_ASSIGN_OR_RETURN(LogPiece piece, Logs(name, -most_bytes, most_bytes));
    return std::move(piece.text);
  }

  // Where the replica in this slot is reached, "host:port": the same however often the slot is
  // refilled.
  virtual Result<std::string> AddressOf(job::Role role, int index) = 0;
};

}  // namespace edl::backend
