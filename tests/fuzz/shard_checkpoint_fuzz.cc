// A shard checkpoint from anywhere: refused with a message, or fit to be restored, and then what is
// left to do lies within the dataset.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/check.h"
#include "master/dataset.h"
#include "master/ledger.h"
#include "master/shard_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto checkpoint = edl::master::ParseShards(text);
  if (!checkpoint.ok()) {
    CHECK(!checkpoint.status().message().empty(), "an error without a message");
    return 0;
  }

  static edl::Result<edl::master::Ledger> ledger = edl::master::Ledger::Open(":memory:");
  CHECK(ledger.ok(), "{}", ledger.status().message());
  edl::master::DatasetRow row;
  row.id = edl::master::DatasetId(1);
  row.spec = checkpoint->spec;
  edl::master::Dataset dataset(std::move(row), *ledger);
  const auto remaining = edl::master::RemainingShards(*checkpoint, dataset);
  if (remaining.ok()) {
    for (const edl::RangeSet::Range& range : *remaining) {
      CHECK(range.first <= range.last && range.last < dataset.shards_per_epoch(),
            "[{}, {}] of {} shards", range.first, range.last, dataset.shards_per_epoch());
    }
    dataset.Restore(checkpoint->epoch, *remaining);
    const std::string saved = edl::master::SaveShards(dataset, {});
    const auto again = edl::master::ParseShards(saved);
    CHECK(again.ok(), "{} saved as {}: {}", text, saved, again.status().message());
  }
  ledger->Rollback();
  return 0;
}
