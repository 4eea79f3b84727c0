#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/ids.h"
#include "wire/frame.h"

namespace edl::wire {

// The messages between a client and a lane. An answer has the type of its request plus kAnswer; a
// request that fails is answered with kRefusal. docs/formats/wire.md has the layouts.
enum class MessageType : uint8_t {
  kHello = 1,
  kDeclare = 2,
  kPut = 3,
  kPull = 4,
  kOpen = 5,
  kPush = 6,
  kSave = 7,
  kRestore = 8,
  kServe = 9,
  kState = 10,
  kFlush = 11,
  kRefusal = 127,
};
inline constexpr uint8_t kAnswer = 128;

inline uint8_t AnswerTo(uint8_t type) { return type | kAnswer; }

// Identifies a shard of a dataset in one epoch. It stays the same however often the shard is
// leased.
struct ShardKey {
  job::LedgerId ledger;
  job::DatasetId dataset;
  uint32_t generation = 0;
  uint32_t epoch = 0;
  uint64_t ordinal = 0;

  auto operator<=>(const ShardKey&) const = default;
};

struct ShardKeyHash {
  size_t operator()(const ShardKey& key) const;
};

// The first message of a connection. It names the lane that the connection is for, and the place
// that the caller assumes for that lane among all lanes of the job. The server refuses another
// place: by it the caller decides which rows to send there.
struct Hello {
  std::string token;
  std::string caller;  // name of the caller, for logs and errors
  job::LaneInServer lane_in_server;
  job::LaneInJob lane_in_job;
  // Lanes of all servers. 0: the connection is for no lane yet. The server only answers with its
  // Welcome, and the caller sends another Hello.
  uint32_t lanes_in_job = 0;
};
struct Welcome {
  job::PsIncarnation incarnation;
  uint32_t lanes = 0;  // of each server
  uint32_t servers = 0;
  uint32_t index = 0;  // of this server, from 0
  // Bytes that all lanes of the server have saved and restored so far. The number rises while a
  // save or a restore makes progress, and is known even while lanes are too busy to answer State.
  uint64_t progress_bytes = 0;
};

// The abstract Unix socket on which a server with this TCP port accepts shared memory.
std::string RingName(uint16_t port);

// Declares the tables and tensors of the connection, as JSON: docs/formats/parameters.md. Later
// messages of the same connection name them by their index in the text, from 0.
struct Declare {
  std::string text;
};

// Sets the values of tensors that have none yet. The tensor part holds, for each tensor, the blocks
// of this lane, one after the other.
struct Put {
  std::vector<uint32_t> tensors;
};
struct PutAnswer {
  uint32_t taken = 0;  // blocks that had no value before
};

// What a Pull or a Push contains of a table and of a tensor.
struct TableEntry {
  uint32_t table = 0;
  uint32_t ids = 0;         // how many
  float learning_rate = 0;  // Push only

  bool operator==(const TableEntry&) const = default;
};
struct TensorEntry {
  uint32_t tensor = 0;
  float learning_rate = 0;  // Push only

  bool operator==(const TensorEntry&) const = default;
};

// Reads rows and tensors. The tensor part holds the ids of each table. The tensor part of the
// answer holds the rows of each table, then the blocks of this lane of each tensor.
struct Pull {
  enum class Unknown : uint8_t { kMake = 0, kTell = 1 };

  // What to do for an id that has no row. kMake: create the row. kTell: answer with the row that
  // would be created, and create none.
  Unknown unknown = Unknown::kMake;
  std::vector<TableEntry> tables;
  std::vector<uint32_t> tensors;
};
struct PullAnswer {
  uint64_t version = 0;  // number of pushes that the lane has applied
};

// Opens a shard: the caller is about to push its batches under this lease. Older leases of the
// shard are fenced from now on.
struct Open {
  job::LeaseId lease;
  ShardKey shard;
};
struct OpenAnswer {
  uint64_t watermark = 0;  // the first batch that a bucket of this lane lacks
  job::PsEpoch ps_epoch;
};

// Applies the gradients of one batch. The tensor part holds, for each table, the ids and their
// gradients, then for each tensor the blocks of this lane.
struct Push {
  job::LeaseId lease;
  ShardKey shard;
  uint64_t batch = 0;  // from 0 within the shard
  // A gradient of the batch was NaN or infinite: the batch is counted and changes nothing.
  bool refused = false;
  // The version of the lane when the parameters were pulled. kNoVersion: not known.
  static constexpr uint64_t kNoVersion = UINT64_MAX;
  uint64_t version = kNoVersion;
  std::vector<TableEntry> tables;
  std::vector<TensorEntry> tensors;
};
enum class PushOutcome : uint8_t {
  kApplied = 0,
  kAlready = 1,  // the batch was applied before
  kAhead = 2,    // an earlier batch is missing: the watermark is the first such batch
  kNotOpen = 3,  // the shard is not open at this lane
  kFenced = 4,   // the shard has a newer lease, or the lease has ended
  kStale = 5,    // the parameters were too old for the round: pull, and compute the batch again
};
struct PushAnswer {
  PushOutcome outcome = PushOutcome::kApplied;
  uint64_t watermark = 0;
  uint64_t version = 0;
};

// Saves the present state of the lane to a file that the server can write. The answer is sent when
// the file is durable. Use a connection of its own: answers are sent in the order of the requests.
struct Save {
  std::string path;
};
struct SaveAnswer {
  uint64_t bytes = 0;
  double seconds = 0;
  double longest_pause_seconds = 0;  // in which the lane served no request
};

// Loads the buckets of this lane from the parts of a checkpoint. The lane must not be trained yet.
struct Restore {
  // The server that is meant. 0: any.
  job::PsIncarnation incarnation;
  // The epoch that begins with this restore. The lane refuses a lower one than that of a restore
  // before.
  job::PsEpoch ps_epoch;
  // False: restores the parameters only, because the watermarks belong to another ledger.
  bool with_watermarks = true;
  std::vector<std::string> paths;
};
struct RestoreAnswer {
  uint64_t rows = 0;  // of the lane after the restore
};

// From the master: the lane serves clients from now on, in this epoch of the servers.
struct Serve {
  job::PsIncarnation incarnation;  // of the server that is meant
  job::PsEpoch ps_epoch;
  bool may_push = false;  // false: Open requests wait
  job::LeaseId floor;     // leases below this one have ended
  // Shards that no restore will need again: JSON, a checkpoint::ShardSet.
  std::string covered;
  // True: the state of the server is saved, or not needed. It may exit.
  bool released = false;
};

// kFlush has no content. It closes open rounds with the gradients that they have.

// The state and the counters of a lane.
struct StateAnswer {
  job::PsEpoch ps_epoch;  // 0: the lane does not serve yet
  uint64_t rows = 0;
  uint64_t bytes = 0;
  uint64_t evicted = 0;
  uint64_t rows_pulled = 0;
  uint64_t rows_pushed = 0;
  uint64_t opens_waiting = 0;
  bool leaving = false;  // the server is about to exit: it accepts no pushes and waits for a save
  // Gradients in the open rounds: of the bucket with the fewest, and of the bucket with the most.
  uint64_t least_contributed = 0;
  uint64_t most_contributed = 0;
  // Bytes of checkpoint parts that were written and read so far, over all saves and restores.
  uint64_t saved_bytes = 0;
  uint64_t restored_bytes = 0;
};

std::string Encode(const Hello& message);
std::string Encode(const Welcome& message);
std::string Encode(const Declare& message);
std::string Encode(const Put& message);
std::string Encode(const PutAnswer& message);
std::string Encode(const Pull& message);
std::string Encode(const PullAnswer& message);
std::string Encode(const Open& message);
std::string Encode(const OpenAnswer& message);
std::string Encode(const Push& message);
std::string Encode(const PushAnswer& message);
std::string Encode(const Save& message);
std::string Encode(const SaveAnswer& message);
std::string Encode(const Restore& message);
std::string Encode(const RestoreAnswer& message);
std::string Encode(const Serve& message);
std::string Encode(const StateAnswer& message);
// Encodes a kRefusal. REQUIRES: !failure.ok().
std::string Encode(const Status& failure);

// InvalidArgument: the bytes are not such a message.
Status Decode(std::span<const std::byte> meta, Hello& message);
Status Decode(std::span<const std::byte> meta, Welcome& message);
Status Decode(std::span<const std::byte> meta, Declare& message);
Status Decode(std::span<const std::byte> meta, Put& message);
Status Decode(std::span<const std::byte> meta, PutAnswer& message);
Status Decode(std::span<const std::byte> meta, Pull& message);
Status Decode(std::span<const std::byte> meta, PullAnswer& message);
Status Decode(std::span<const std::byte> meta, Open& message);
Status Decode(std::span<const std::byte> meta, OpenAnswer& message);
Status Decode(std::span<const std::byte> meta, Push& message);
Status Decode(std::span<const std::byte> meta, PushAnswer& message);
Status Decode(std::span<const std::byte> meta, Save& message);
Status Decode(std::span<const std::byte> meta, SaveAnswer& message);
Status Decode(std::span<const std::byte> meta, Restore& message);
Status Decode(std::span<const std::byte> meta, RestoreAnswer& message);
Status Decode(std::span<const std::byte> meta, Serve& message);
Status Decode(std::span<const std::byte> meta, StateAnswer& message);
// The failure in a kRefusal; never Ok.
Status DecodeRefusal(std::span<const std::byte> meta);

// Reads the tensors of a frame one by one. Confined.
class TensorReader {
 public:
  explicit TensorReader(std::span<const std::byte> tensors) : rest_(tensors) {}

  // The next tensor, of `values` values. InvalidArgument: the frame has fewer bytes left.
  template <typename Value>
  Result<std::span<const Value>> Take(size_t values) {
    EDL_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, TakeBytes(values, sizeof(Value)));
    return std::span(reinterpret_cast<const Value*>(bytes.data()), values);
  }
  // InvalidArgument: bytes are left.
  Status End() const;

 private:
  Result<std::span<const std::byte>> TakeBytes(size_t values, size_t size);

  std::span<const std::byte> rest_;
};

}  // namespace edl::wire
