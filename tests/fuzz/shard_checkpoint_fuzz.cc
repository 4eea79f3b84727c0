// The input is a shard checkpoint. It is rejected with a message, or restored by a master. After a
// restore, the remaining shards are within the dataset, and saving gives the same progress.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/log.h"
#include "job/job_spec.h"
#include "master/core.h"
#include "master/ledger/ledger.h"
#include "master/shards/shard_checkpoint.h"

namespace {

using edl::master::Core;
using edl::master::Dataset;
using edl::master::ShardCheckpoint;

void CheckRanges(const ShardCheckpoint& checkpoint, const Dataset& dataset) {
  const auto remaining = edl::master::RemainingShards(checkpoint, dataset);
  if (!remaining.ok()) return;
  for (const edl::RangeSet::Range& range : *remaining) {
    CHECK(range.first <= range.last && range.last < dataset.shards_per_epoch(),
          "[{}, {}] of {} shards", range.first, range.last, dataset.shards_per_epoch());
  }
}

std::string Save(Core& core, const std::string& name) {
  const auto saved = core.dispatcher().Save(name);
  CHECK(saved.ok(), "{}", saved.status().message());
  return *saved;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto checkpoint = edl::master::ParseShards(text);
  if (!checkpoint.ok()) {
    CHECK(!checkpoint.status().message().empty(), "an error without a message");
    return 0;
  }

  edl::SetLogLevel(edl::LogLevel::kCritical);
  static edl::Result<edl::master::Ledger> ledger = edl::master::Ledger::Open(":memory:");
  CHECK(ledger.ok(), "{}", ledger.status().message());
  static const edl::job::JobSpec job;
  Core core(*ledger, job, 1);
  const edl::Status loaded = core.Load(edl::Time(), edl::WallTime());
  CHECK(loaded.ok(), "{}", loaded.message());
  const auto restored = core.Restore(text);
  if (restored.ok()) {
    const Dataset& dataset = *core.dispatcher().datasets().begin()->second;
    CheckRanges(*checkpoint, dataset);
    CHECK(dataset.row().records_done >= 0, "{} records done", dataset.row().records_done);
    if (!dataset.endless()) {
      CHECK(dataset.row().records_done <= dataset.spec().size * dataset.spec().epochs,
            "{} of {} records done", dataset.row().records_done,
            dataset.spec().size * dataset.spec().epochs);
      CHECK(dataset.HasMore() != dataset.Complete(),
            "complete and yet something to do, or neither");
    }
    const std::string saved = Save(core, dataset.spec().name);
    const auto again = core.Restore(saved);
    CHECK(again.ok(), "{} saved as {}: {}", text, saved, again.status().message());
    CHECK(Save(core, dataset.spec().name) == saved, "{} is saved otherwise the second time", saved);
  } else {
    CHECK(!restored.status().message().empty(), "an error without a message");
  }
  ledger->Rollback();
  return 0;
}
