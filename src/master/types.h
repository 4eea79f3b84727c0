#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/strong_id.h"
#include "job/role.h"

namespace edl::master {

// Rises over the whole ledger and is never used twice.
using LeaseId = StrongId<struct LeaseIdTag, uint64_t>;
// One life of a process that joined; from the ledger, never used twice.
using Incarnation = StrongId<struct IncarnationTag, uint64_t>;
using DatasetId = StrongId<struct DatasetIdTag, int64_t>;

// How the shards and records of an epoch follow one another.
enum class Order { kSequential, kShuffleShards, kShuffleRecords };

// Which permutation the shards or records of a shuffled dataset have.
struct ShardOrder {
  uint64_t seed = 0;
  uint32_t generation = 1;
};

// What the user wants of a dataset.
struct DatasetSpec {
  std::string name;
  int64_t size = 0;
  int64_t batch_size = 0;         // registered with 0: --minibatch_size
  int64_t batches_per_shard = 0;  // registered with 0: --num_minibatches_per_task
  int64_t epochs = 1;             // registered with 0: --num_epochs. In force, 0 or less: no end
  Order order = Order::kSequential;
  std::string task_type = "training";  // or "evaluation", "prediction"
};

// A range of a dataset's order in one epoch, the same however often it is leased.
struct ShardKey {
  int64_t epoch = 0;
  uint64_t ordinal = 0;
  auto operator<=>(const ShardKey&) const = default;
};

// A shard in the hands of a caller.
struct LeasedShard {
  LeaseId lease;
  int32_t task = 0;  // the lease's number at the compatibility API, per dataset
  std::string dataset;
  std::string task_type;
  uint32_t generation = 0;
  // With the generation and the key they name the shard at parameter servers of ours.
  uint64_t ledger = 0;
  DatasetId dataset_id;
  ShardKey key;
  int64_t start = 0;
  int64_t end = 0;
  std::vector<int64_t> indices;  // record shuffle only
};

enum class Outcome { kDone, kFailed, kGivenBack };

struct ShardReport {
  LeaseId lease;
  Outcome outcome = Outcome::kDone;
  std::string error;
  // The lowest that opening it at parameter servers was answered with; 0: it was not opened.
  uint64_t ps_epoch = 0;
};

enum class Verdict {
  kAccepted = 0,
  kLost = 1,
  kReopen = 2,  // still the caller's: parameter servers may have lost what it pushed
};

enum class Answer {
  kNothing = 0,
  kShards = 1,
  kWait = 2,
  kFinished = 3,
  kUnknownDataset = 4,
  kRetry = 6,
};

// A replica as the master's parts speak of it.
struct ReplicaRef {
  job::Role role = job::Role::kWorker;
  int64_t id = 0;
  auto operator<=>(const ReplicaRef&) const = default;
};

}  // namespace edl::master
