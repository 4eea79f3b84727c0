#include "master/shards/shard_checkpoint.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace edl::master {
namespace {

using nlohmann::json;

constexpr const char* kVersion = "v1.0";

json RangesOf(const Dataset& dataset, const std::vector<RangeSet::Range>& ranges) {
  json list = json::array();
  const int64_t size = dataset.records_per_shard();
  for (const RangeSet::Range& range : ranges) {
    list.push_back({static_cast<int64_t>(range.first) * size,
                    std::min(static_cast<int64_t>(range.last + 1) * size, dataset.spec().size)});
  }
  return list;
}

// A whole number; 1e3 and 1.0 are errors.
Result<int64_t> Whole(const json& in, const char* key) {
  auto found = in.find(key);
  if (found == in.end() || !found->is_number_integer()) {
    return InvalidArgument("a shard checkpoint needs '{}', a whole number", key);
  }
  return found->get<int64_t>();
}

Status ReadPlaces(const json& in, const char* key, int64_t size,
                  std::vector<ShardCheckpoint::Places>& places) {
  auto found = in.find(key);
  if (found == in.end() || !found->is_array()) {
    return InvalidArgument("a shard checkpoint needs '{}', a list of [start, end]", key);
  }
  for (const json& entry : *found) {
    if (!entry.is_array() || entry.size() < 2 || !entry[0].is_number_integer() ||
        !entry[1].is_number_integer()) {
      return InvalidArgument("'{}' of a shard checkpoint has {}, which is not [start, end]", key,
                             Excerpt(entry));
    }
    const auto start = entry[0].get<int64_t>();
    const auto end = entry[1].get<int64_t>();
    if (start < 0 || end <= start || end > size) {
      return InvalidArgument("'{}' of a shard checkpoint has [{}, {}], outside of [0, {}]", key,
                             start, end, size);
    }
    places.push_back({start, end});
  }
  return Ok();
}

Result<std::optional<ShardOrder>> ReadOrder(const json& in) {
  const auto seed = in.find("order_seed");
  const auto generation = in.find("order_generation");
  if (seed == in.end() && generation == in.end()) return std::optional<ShardOrder>();
  if (seed == in.end() || !seed->is_number_unsigned() || generation == in.end() ||
      !generation->is_number_unsigned() ||
      generation->get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
    return InvalidArgument(
        "'order_seed' and 'order_generation' of a shard checkpoint are not two whole numbers");
  }
  return std::optional<ShardOrder>({seed->get<uint64_t>(), generation->get<uint32_t>()});
}

Result<ShardCheckpoint> Read(const json& in) {
  if (!in.is_object()) return InvalidArgument("a shard checkpoint must be a JSON object");
  auto version = in.find("version");
  if (version == in.end() || *version != kVersion) {
    return InvalidArgument("the shard checkpoint's version is {}, not \"{}\"",
                           version == in.end() ? "missing" : Excerpt(*version), kVersion);
  }
  auto name = in.find("dataset_name");
  if (name == in.end() || !name->is_string()) {
    return InvalidArgument("a shard checkpoint needs 'dataset_name', a text");
  }
  ShardCheckpoint checkpoint;
  checkpoint.spec.name = name->get<std::string>();
  EDL_ASSIGN_OR_RETURN(checkpoint.epoch, Whole(in, "current_epoch"));
  EDL_ASSIGN_OR_RETURN(checkpoint.spec.epochs, Whole(in, "num_epochs"));
  EDL_ASSIGN_OR_RETURN(checkpoint.spec.size, Whole(in, "dataset_size"));
  EDL_ASSIGN_OR_RETURN(checkpoint.spec.batches_per_shard, Whole(in, "records_per_task"));
  checkpoint.spec.batch_size = 1;
  if (in.contains("batch_size")) {
    EDL_ASSIGN_OR_RETURN(const int64_t batch, Whole(in, "batch_size"));
    if (batch <= 0 || checkpoint.spec.batches_per_shard % batch != 0) {
      return InvalidArgument("'batch_size' {} of a shard checkpoint does not divide {} records",
                             batch, checkpoint.spec.batches_per_shard);
    }
    checkpoint.spec.batch_size = batch;
    checkpoint.spec.batches_per_shard /= batch;
  }
  if (auto shuffle = in.find("shuffle_shards"); shuffle != in.end() && shuffle->is_boolean()) {
    if (shuffle->get<bool>()) checkpoint.spec.order = Order::kShuffleShards;
  }
  if (auto shuffle = in.find("shuffle_records"); shuffle != in.end() && shuffle->is_boolean()) {
    if (shuffle->get<bool>()) checkpoint.spec.order = Order::kShuffleRecords;
  }
  EDL_RETURN_IF_ERROR(Dataset::Check(checkpoint.spec));
  // In an endless dataset the number of done records must not overflow.
  const int64_t last_epoch = checkpoint.spec.epochs > 0 ? checkpoint.spec.epochs
                                                        : (int64_t{1} << 62) / checkpoint.spec.size;
  if (checkpoint.epoch < 0 || checkpoint.epoch > last_epoch) {
    return InvalidArgument("'current_epoch' {} of a shard checkpoint is outside of [0, {}]",
                           checkpoint.epoch, last_epoch);
  }
  EDL_ASSIGN_OR_RETURN(checkpoint.order, ReadOrder(in));
  EDL_RETURN_IF_ERROR(ReadPlaces(in, "todo", checkpoint.spec.size, checkpoint.remaining));
  EDL_RETURN_IF_ERROR(ReadPlaces(in, "doing", checkpoint.spec.size, checkpoint.remaining));
  return checkpoint;
}

}  // namespace

std::string SaveShards(const Dataset& dataset, std::vector<ShardPosition> leased) {
  // The format has one epoch: the first that is not complete. Progress in later epochs is not
  // saved, so a restore trains them again from their start.
  const int64_t epoch = dataset.first_open_epoch();
  const DatasetSpec& spec = dataset.spec();
  json out = {{"version", kVersion},
              {"dataset_name", spec.name},
              {"current_epoch", epoch},
              {"num_epochs", spec.epochs},
              {"records_per_task", dataset.records_per_shard()},
              {"batch_size", spec.batch_size},
              {"dataset_size", spec.size},
              {"shuffle_shards", spec.order == Order::kShuffleShards},
              {"shuffle_records", spec.order == Order::kShuffleRecords},
              {"current_subepoch", 0}};
  if (spec.order != Order::kSequential) {
    out["order_seed"] = dataset.order().seed;
    out["order_generation"] = dataset.order().generation;
  }
  RangeSet doing;
  for (const ShardPosition& key : leased) {
    if (key.epoch == epoch) doing.Add(key.ordinal);
  }
  RangeSet not_todo = doing;
  if (const RangeSet* done = dataset.done(epoch)) {
    for (const RangeSet::Range& range : done->ranges()) not_todo.AddRange(range);
  }
  std::vector<RangeSet::Range> todo;
  const bool over = !dataset.endless() && epoch >= spec.epochs;
  uint64_t from = 0;
  for (const RangeSet::Range& range : not_todo.ranges()) {
    if (range.first > from) todo.push_back({from, range.first - 1});
    from = range.last + 1;
  }
  if (!over && from < dataset.shards_per_epoch()) {
    todo.push_back({from, dataset.shards_per_epoch() - 1});
  }
  out["todo"] = RangesOf(dataset, todo);
  out["doing"] = RangesOf(dataset, doing.ranges());
  return Dump(out);
}

Result<ShardCheckpoint> ParseShards(const std::string& content) {
  const Result<json> in = ParseJson(content);
  if (!in.ok())
    return InvalidArgument("a shard checkpoint must be JSON: {}", in.status().message());
  return Read(*in);
}

Result<std::vector<RangeSet::Range>> RemainingShards(const ShardCheckpoint& checkpoint,
                                                     const Dataset& dataset) {
  const int64_t saved_size = checkpoint.spec.batch_size * checkpoint.spec.batches_per_shard;
  if (checkpoint.spec.size != dataset.spec().size || saved_size != dataset.records_per_shard()) {
    return FailedPrecondition(
        "the shard checkpoint of '{}' has {} records in shards of {}, the dataset has {} in shards "
        "of {}",
        dataset.spec().name, checkpoint.spec.size, saved_size, dataset.spec().size,
        dataset.records_per_shard());
  }
  std::vector<RangeSet::Range> ordinals;
  for (const auto& [start, end] : checkpoint.remaining) {
    if (start % saved_size != 0 || (end % saved_size != 0 && end != checkpoint.spec.size)) {
      return FailedPrecondition(
          "the shard checkpoint of '{}' leaves [{}, {}), which is not a run of whole shards of {}",
          dataset.spec().name, start, end, saved_size);
    }
    ordinals.push_back(
        {static_cast<uint64_t>(start / saved_size), static_cast<uint64_t>((end - 1) / saved_size)});
  }
  return ordinals;
}

}  // namespace edl::master
