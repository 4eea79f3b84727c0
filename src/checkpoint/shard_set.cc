#include "checkpoint/shard_set.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace edl::checkpoint {
namespace {

using nlohmann::json;

json RangesOf(const RangeSet& set) {
  json ranges = json::array();
  for (const RangeSet::Range& range : set.ranges()) ranges.push_back({range.first, range.last});
  return ranges;
}

bool ReadRanges(const json& in, RangeSet& set) {
  if (!in.is_array()) return false;
  for (const json& range : in) {
    if (!range.is_array() || range.size() != 2 || !range[0].is_number_unsigned() ||
        !range[1].is_number_unsigned()) {
      return false;
    }
    const RangeSet::Range read{range[0].get<uint64_t>(), range[1].get<uint64_t>()};
    if (read.first > read.last || read.last == UINT64_MAX) return false;
    set.AddRange(read);
  }
  return true;
}

bool ReadNumber(const std::string& text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ReadDataset(const json& in, ShardSet::Dataset& dataset) {
  const json generation = in.value("generation", json());
  if (!generation.is_number_unsigned()) return false;
  dataset.generation = generation.get<uint32_t>();
  if (!ReadRanges(in.value("epochs", json()), dataset.epochs)) return false;
  const json shards = in.value("shards", json());
  if (!shards.is_object()) return false;
  for (const auto& [epoch, ranges] : shards.items()) {
    int64_t number = 0;
    if (!ReadNumber(epoch, number) || !ReadRanges(ranges, dataset.shards[number])) return false;
  }
  return true;
}

}  // namespace

bool ShardSet::Contains(job::DatasetId dataset, uint32_t generation, int64_t epoch,
                        uint64_t ordinal) const {
  const auto found = datasets.find(dataset);
  if (found == datasets.end() || generation > found->second.generation) return false;
  if (generation < found->second.generation) return true;
  if (found->second.epochs.Contains(static_cast<uint64_t>(epoch))) return true;
  const auto shards = found->second.shards.find(epoch);
  return shards != found->second.shards.end() && shards->second.Contains(ordinal);
}

std::string ShardSet::ToJson() const {
  json out = {{"ledger", ledger.value()}, {"datasets", json::object()}};
  for (const auto& [id, dataset] : datasets) {
    json shards = json::object();
    for (const auto& [epoch, ordinals] : dataset.shards) {
      shards[std::to_string(epoch)] = RangesOf(ordinals);
    }
    out["datasets"][std::to_string(id.value())] = {{"generation", dataset.generation},
                                                   {"epochs", RangesOf(dataset.epochs)},
                                                   {"shards", shards}};
  }
  return Dump(out);
}

Result<ShardSet> ShardSet::FromJson(const std::string& text) {
  const auto none = [] {
    return DataLoss("'covered' is not a set of shards as in docs/formats/checkpoint.md");
  };
  const Result<json> parsed = ParseJson(text);
  if (!parsed.ok() || !parsed->is_object()) return none();
  const json& in = *parsed;
  const json ledger = in.value("ledger", json());
  const json datasets = in.value("datasets", json());
  if (!ledger.is_number_unsigned() || !datasets.is_object()) return none();
  ShardSet set;
  set.ledger = job::LedgerId(ledger.get<uint64_t>());
  for (const auto& [id, dataset] : datasets.items()) {
    int64_t number = 0;
    if (!dataset.is_object() || !ReadNumber(id, number) ||
        !ReadDataset(dataset, set.datasets[job::DatasetId(number)])) {
      return none();
    }
  }
  return set;
}

}  // namespace edl::checkpoint
