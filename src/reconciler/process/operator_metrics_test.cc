#include "reconciler/process/operator_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Result = OperatorMetrics::SyncResult;

TEST(OperatorMetrics, CountJobsByNamespaceWithTheNamesOfTheUpstreamOperator) {
  OperatorMetrics metrics;
  metrics.Count("ml", {.created = true});
  metrics.Count("ml", {.restarted = true, .succeeded = true});
  metrics.Count("ops", {.created = true, .failed = true});
  metrics.CountDeletion("ops");

  const std::string text = metrics.Text({}, 2, true);

  for (const auto& [name, ml, ops] :
       {std::tuple("created", 1, 1), std::tuple("restarted", 1, 0), std::tuple("successful", 1, 0),
        std::tuple("failed", 0, 1), std::tuple("deleted", 0, 1)}) {
    EXPECT_THAT(text,
                HasSubstr(fmt::format("# TYPE training_operator_jobs_{}_total counter\n", name)));
    for (const auto& [ns, count] : {std::pair("ml", ml), std::pair("ops", ops)}) {
      EXPECT_THAT(text, HasSubstr(fmt::format("training_operator_jobs_{}_total{{framework="
                                              "\"tensorflow\",job_namespace=\"{}\"}} {}\n",
                                              name, ns, count)));
    }
  }
}

TEST(OperatorMetrics, DescribeReconciliationsAndTheQueue) {
  OperatorMetrics metrics;
  metrics.CountSync(Result::kSuccess, milliseconds(4));
  metrics.CountSync(Result::kRequeueAfter, milliseconds(30));
  metrics.CountSync(Result::kError, milliseconds(6000));

  const std::string text =
      metrics.Text({.added = 5, .retried = 2, .queued = 3, .running = 1}, 7, false);

  for (const char* line :
       {"controller_runtime_reconcile_total{controller=\"tfjob-controller\",result=\"success\"} 1",
        "controller_runtime_reconcile_total{controller=\"tfjob-controller\","
        "result=\"requeue_after\"} 1",
        "controller_runtime_reconcile_total{controller=\"tfjob-controller\",result=\"error\"} 1",
        "controller_runtime_reconcile_errors_total{controller=\"tfjob-controller\"} 1",
        "controller_runtime_reconcile_time_seconds_bucket{controller=\"tfjob-controller\","
        "le=\"0.005\"} 1",
        "controller_runtime_reconcile_time_seconds_bucket{controller=\"tfjob-controller\","
        "le=\"0.05\"} 2",
        "controller_runtime_reconcile_time_seconds_bucket{controller=\"tfjob-controller\","
        "le=\"+Inf\"} 3",
        "controller_runtime_reconcile_time_seconds_count{controller=\"tfjob-controller\"} 3",
        "controller_runtime_active_workers{controller=\"tfjob-controller\"} 1",
        "workqueue_depth{name=\"tfjob-controller\"} 3",
        "workqueue_adds_total{name=\"tfjob-controller\"} 5",
        "workqueue_retries_total{name=\"tfjob-controller\"} 2", "elasticdl_operator_jobs 7",
        "leader_election_master_status{name=\"tfjob-controller\"} 0"}) {
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
  }
}

}  // namespace
}  // namespace edl::reconciler
