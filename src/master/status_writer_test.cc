#include "master/status_writer.h"

#include <future>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/await.h"
#include "base/testing/status_matchers.h"

namespace edl::master {
namespace {

job::JobView ViewOf(int64_t version) {
  job::JobView view;
  view.version = version;
  return view;
}

TEST(StatusWriter, DoesNotBlockItsCallerAndSkipsToTheNewest) {
  std::promise<void> began;
  std::promise<void> go_on;
  using Durability = StatusWriter::Durability;
  std::vector<std::pair<int64_t, Durability>> written;
  {
    StatusWriter writer([&](const job::JobView& view, Durability durability) {
      if (view.version == 1) {
        began.set_value();
        EXPECT_OK(AwaitReady(go_on.get_future(), "the test lets the first write end"));
      }
      written.emplace_back(view.version, durability);
    });
    writer.Update(ViewOf(1), Durability::kBestEffort);
    EXPECT_OK(AwaitReady(began.get_future(), "the writer writes the first view"));
    writer.Update(ViewOf(2), Durability::kDurable);
    writer.Update(ViewOf(3), Durability::kBestEffort);  // while the first is still being written
    go_on.set_value();
    writer.Flush();
    EXPECT_EQ(written.size(), 2u);
    writer.Update(ViewOf(4), Durability::kDurable);
  }
  EXPECT_EQ(written, (std::vector<std::pair<int64_t, Durability>>{{1, Durability::kBestEffort},
                                                                  {3, Durability::kDurable},
                                                                  {4, Durability::kDurable}}));
}

}  // namespace
}  // namespace edl::master
