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
  std::vector<std::pair<int64_t, bool>> written;
  {
    StatusWriter writer([&](const job::JobView& view, bool durable) {
      if (view.version == 1) {
        began.set_value();
        EXPECT_OK(AwaitReady(go_on.get_future(), "the test lets the first write end"));
      }
      written.emplace_back(view.version, durable);
    });
    writer.Show(ViewOf(1), false);
    EXPECT_OK(AwaitReady(began.get_future(), "the writer writes the first view"));
    writer.Show(ViewOf(2), true);
    writer.Show(ViewOf(3), false);  // while the first is still being written
    go_on.set_value();
    writer.Flush();
    EXPECT_EQ(written.size(), 2u);
    writer.Show(ViewOf(4), true);
  }
  EXPECT_EQ(written, (std::vector<std::pair<int64_t, bool>>{{1, false}, {3, true}, {4, true}}));
}

}  // namespace
}  // namespace edl::master
