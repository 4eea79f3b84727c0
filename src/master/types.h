#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/ids.h"
#include "job/role.h"

namespace edl::master {

using job::DatasetId;
using job::Incarnation;
using job::LeaseId;
using job::LedgerId;
using job::PsEpoch;
using job::PsIncarnation;

// The order of the shards and records of an epoch.
enum class Order { kSequential, kShuffleShards, kShuffleRecords };

// Selects the permutation of a shuffled dataset.
struct ShardOrder {
  uint64_t seed = 0;
  uint32_t generation = 1;
};

// What a program does with the records of a dataset.
enum class TaskType { kTraining, kEvaluation, kEvaluationMerge, kPrediction, kExport };
// "training", "evaluation", "evaluation_merge", "prediction", "export".
std::string_view NameOf(TaskType type);
// nullopt: no task type has that name.
std::optional<TaskType> TaskTypeFromName(std::string_view name);

// A dataset as the program registers it. In force, no number is 0 except `epochs`.
struct DatasetSpec {
  std::string name;
  int64_t size = 0;
  int64_t batch_size = 0;         // registered with 0: --minibatch_size
  int64_t batches_per_shard = 0;  // registered with 0: --num_minibatches_per_task
  int64_t epochs = 1;             // registered with 0: --num_epochs. In force, 0 or less: endless
  Order order = Order::kSequential;
  TaskType task_type = TaskType::kTraining;
};

// Names a shard of a dataset: a range of its order in one epoch. A shard stays the same however
// often it is leased.
struct ShardPosition {
  int64_t epoch = 0;
  uint64_t ordinal = 0;
  auto operator<=>(const ShardPosition&) const = default;
};

// A leased shard as its holder receives it.
struct LeasedShard {
  LeaseId lease;
  int32_t task = 0;  // the lease's number at the compatibility API, per dataset
  std::string dataset;
  TaskType task_type = TaskType::kTraining;
  uint32_t generation = 0;
  // With the generation and the key, these name the shard at our own parameter servers.
  LedgerId ledger;
  DatasetId dataset_id;
  ShardPosition key;
  int64_t start = 0;
  int64_t end = 0;
  std::vector<int64_t> indices;  // record shuffle only
  // A job with a model: the version of the job now, or that is evaluated or exported.
  int64_t version = 0;
};

// How the work on a leased shard ended.
enum class ShardOutcome {
  kDone,
  kFailed,     // through the fault of the data or the program: counts towards quarantine
  kGivenBack,  // not trained: counts as no failure
};

struct ShardReport {
  LeaseId lease;
  ShardOutcome outcome = ShardOutcome::kDone;
  std::string error;
  // The lowest ps epoch that a parameter server answered when the shard was opened; 0: the shard
  // was not opened at any server.
  PsEpoch ps_epoch;
  // With kDone: kept in the ledger until the dataset is reset. Empty: none.
  std::string result;
};

// What the master answers to the report of a shard. The numbers are those of the wire.
enum class ReportVerdict {
  kAccepted = 0,
  kLost = 1,    // the caller does not hold the lease (any more): not counted
  kReopen = 2,  // not counted yet: parameter servers may have lost what the caller pushed
};

// What the master answers to a request for shards. The numbers are those of the wire.
enum class LeaseAnswer {
  kNothing = 0,  // no shard was requested
  kShards = 1,
  kWait = 2,
  kFinished = 3,
  kUnknownDataset = 4,
  kRetry = 6,
};

// Names a replica within the job.
struct ReplicaRef {
  job::Role role = job::Role::kWorker;
  int64_t id = 0;
  auto operator<=>(const ReplicaRef&) const = default;
};

}  // namespace edl::master
