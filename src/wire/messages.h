#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "wire/frame.h"

namespace edl::wire {

// What a worker asks a lane. An answer has its request's type and kAnswer; a failure is answered
// with kRefusal. The layout of each is in docs/formats/wire.md.
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

// A shard of a dataset in one epoch, the same however often it is leased.
struct ShardKey {
  uint64_t ledger = 0;
  uint64_t dataset = 0;
  uint32_t generation = 0;
  uint32_t epoch = 0;
  uint64_t ordinal = 0;

  auto operator<=>(const ShardKey&) const = default;
};

struct ShardKeyHash {
  size_t operator()(const ShardKey& key) const;
};

// The first message of a connection: which lane it is for, and where the caller believes that lane
// to be among those of the job, as it decides by that what to send there.
struct Hello {
  std::string token;
  std::string caller;  // for people
  uint32_t lane = 0;   // of this server
  uint32_t place = 0;  // the lane's, counted over all servers
  // Lanes of all servers. 0: the caller asks for the number, and sends Hello again.
  uint32_t lanes = 0;
};
struct Welcome {
  uint64_t incarnation = 0;  // of the server
  uint32_t lanes = 0;        // that each server has
  uint32_t servers = 0;
  uint32_t index = 0;  // of this server among them
  // Bytes that all its lanes have saved and restored so far. It rises while a save or a restore
  // makes progress, and is told even while lanes are too busy to answer State.
  uint64_t progress_bytes = 0;
};

// The abstract Unix name on which a server with that TCP port takes shared memory.
std::string RingName(uint16_t port);

// What the following messages will speak of: JSON, docs/formats/parameters.md. The caller numbers
// its tables and its tensors from 0 in the order of the text; the numbers are the connection's own.
struct Declare {
  std::string text;
};

// Values of tensors that have none yet. The tensor part holds, for each, the blocks that belong to
// this lane, one after the other.
struct Put {
  std::vector<uint32_t> tensors;
};
struct PutAnswer {
  uint32_t taken = 0;  // blocks that had no value
};

// How many rows of a table.
struct TableShare {
  uint32_t table = 0;
  uint32_t ids = 0;
  float learning_rate = 0;  // of a push

  bool operator==(const TableShare&) const = default;
};
struct TensorShare {
  uint32_t tensor = 0;
  float learning_rate = 0;  // of a push

  bool operator==(const TensorShare&) const = default;
};

// Weights of rows and of tensors. The tensor part holds the ids of each table; the answer's holds
// their rows, then this lane's blocks of each tensor.
struct Pull {
  enum class Unknown : uint8_t { kMake = 0, kTell = 1 };

  Unknown unknown = Unknown::kMake;  // what to do about an id that has no row
  std::vector<TableShare> tables;
  std::vector<uint32_t> tensors;
};
struct PullAnswer {
  uint64_t version = 0;  // pushes that the lane has applied
};

// A worker is about to push the batches of a shard under a lease.
struct Open {
  uint64_t lease = 0;
  ShardKey shard;
};
struct OpenAnswer {
  uint64_t mark = 0;  // the first batch that a bucket of this lane lacks
  uint64_t ps_epoch = 0;
};

// The gradients of one batch. The tensor part holds, for each table, its ids and their gradients,
// then for each tensor this lane's blocks.
struct Push {
  uint64_t lease = 0;
  ShardKey shard;
  uint64_t batch = 0;  // from 0 within the shard
  // The batch counts as done and changes nothing: its gradients were no numbers.
  bool refused = false;
  // What the lane's version was when the parameters were pulled; kNoVersion: nobody knows.
  static constexpr uint64_t kNoVersion = UINT64_MAX;
  uint64_t version = kNoVersion;
  std::vector<TableShare> tables;
  std::vector<TensorShare> tensors;
};
struct PushAnswer {
  enum class Outcome : uint8_t {
    kApplied = 0,
    kAlready = 1,  // it was applied before
    kAhead = 2,    // a batch before it is missing: `mark` is the first
    kNotOpen = 3,  // the shard is not open at this lane
    kFenced = 4,   // the lease is not the shard's newest, or is over
    kStale = 5,    // its parameters were too old for the round: pull, and compute it again
  };
  Outcome outcome = Outcome::kApplied;
  uint64_t mark = 0;
  uint64_t version = 0;
};

// Saves the lane as it is now to a file that the server can write. Answered when it is durable; on
// a connection of its own, for answers come in order.
struct Save {
  std::string path;
};
struct SaveAnswer {
  uint64_t bytes = 0;
  double seconds = 0;
  double longest_pause_seconds = 0;  // of the lane, at a time
};

// Takes from the parts of a checkpoint what belongs to this lane, which does not serve yet.
struct Restore {
  uint64_t incarnation = 0;  // of the server that is meant; 0: whichever
  uint64_t ps_epoch = 0;     // that it is for: one for an earlier epoch comes too late
  bool with_marks = true;    // else what was applied is another ledger's business
  std::vector<std::string> paths;
};
struct RestoreAnswer {
  uint64_t rows = 0;  // that the lane has now
};

// From the master: the lane serves workers from now on, in this epoch of the servers.
struct Serve {
  uint64_t incarnation = 0;  // of the server that is meant
  uint64_t ps_epoch = 0;
  bool may_push = false;  // else who opens a shard is kept waiting
  uint64_t floor = 0;     // leases below it are over
  std::string covered;    // shards that no restore will ask for: JSON, a checkpoint::ShardSet
  bool released = false;  // what the server has is saved, or nobody needs it: it may leave
};

// From the master (kFlush, without content): rounds that are open are closed with what they have.

// What the lane has and did.
struct StateAnswer {
  uint64_t ps_epoch = 0;  // 0: no master has let it serve
  uint64_t rows = 0;
  uint64_t bytes = 0;
  uint64_t evicted = 0;
  uint64_t rows_pulled = 0;
  uint64_t rows_pushed = 0;
  uint64_t opens_waiting = 0;
  bool leaving = false;  // it was told to end: it takes no pushes, and waits to be saved
  // Gradients that rounds had, of the bucket with the fewest and of the one with the most.
  uint64_t least_contributed = 0;
  uint64_t most_contributed = 0;
  // Written to and read from parts of checkpoints so far, over all saves and restores.
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
// Encodes a failure.
std::string Encode(const Status& failure);

// InvalidArgument: the bytes are no such message.
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
// The failure that a kRefusal tells; never Ok.
Status DecodeRefusal(std::span<const std::byte> meta);

// Takes the tensors of a frame one by one. Confined.
class TensorReader {
 public:
  explicit TensorReader(std::span<const std::byte> tensors) : rest_(tensors) {}

  // InvalidArgument: there is less left. Aligned where the frame is.
  template <typename Value>
  Result<std::span<const Value>> Take(size_t values) {
    EDL_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, TakeBytes(values, sizeof(Value)));
    return std::span(reinterpret_cast<const Value*>(bytes.data()), values);
  }
  // InvalidArgument: something is left.
  Status End() const;

 private:
  Result<std::span<const std::byte>> TakeBytes(size_t values, size_t size);

  std::span<const std::byte> rest_;
};

}  // namespace edl::wire
