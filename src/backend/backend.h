#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "job/replica.h"
#include "job/role.h"

namespace edl::backend {

// A part of the output of a replica. Offsets count from the first byte that the replica wrote, even
// if rotation has deleted the beginning.
struct LogPiece {
  std::string text;
  int64_t next_offset = 0;  // where the next read continues
};

// Runs the replicas of a job. Every call is idempotent by replica name, because the master repeats
// calls after its own restart. Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  // Starts a replica. Ok if a replica of that name runs or ran; its events report the rest.
  virtual Status Launch(const job::ReplicaSpec& spec) = 0;

  // Sends SIGTERM to the replica and kills it after `grace`. Returns immediately; an event reports
  // the exit. Ok if the replica does not exist.
  virtual Status Stop(const std::string& name, std::chrono::milliseconds grace) = 0;

  // Calls `on_event` on a thread of the backend: for the last state of every replica, then once
  // with kSynced, then for every change, in order. Each new watcher receives a kExited event again
  // until the exit is acknowledged. There is at most one watcher; a new one replaces it.
  virtual void Watch(std::function<void(const job::ReplicaEvent&)> on_event) = 0;

  // The master has recorded the exit of this replica, so the backend forgets it. Ok if the replica
  // does not exist.
  virtual Status Acknowledge(const std::string& name) = 0;

  // Returns output from `offset` (negative: that many bytes before the end), at most `at_most`
  // bytes. NotFound: the backend never had such a replica.
  virtual Result<LogPiece> Logs(const std::string& name, int64_t offset, int64_t at_most) = 0;

  // Returns the end of the output, at most this many lines and bytes. A backend may read more than
  // that to find them.
  virtual Result<std::string> Tail(const std::string& name, size_t /*max_lines*/,
                                   int64_t max_bytes) {
    EDL_ASSIGN_OR_RETURN(LogPiece piece, Logs(name, -max_bytes, max_bytes));
    return std::move(piece.text);
  }

  // The address "host:port" of the replica in this slot. It stays the same however often the slot
  // is refilled.
  virtual Result<std::string> AddressOf(job::Role role, int index) = 0;
};

}  // namespace edl::backend
