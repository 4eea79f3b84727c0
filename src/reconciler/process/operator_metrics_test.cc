#include "reconciler/process/operator_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Result = OperatorMetrics::SyncResult;

TEST(OperatorMetrics, CountJobsByNamespaceWithTheNamesOfTheUpstreamOperator) {
  OperatorMetrics counts;
  counts.Count("ml", {.created = true});
  counts.Count("ml", {.restarted = true, .succeeded = true});
  counts.Count("ops", {.created = true, .failed = true});
  counts.CountDeletion("ops");

  metrics::Exposition out(metrics::Format::kPrometheus, {});
  counts.AddTo(out, {}, 2, 4, true);
  const std::string text = out.Finish();

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
  OperatorMetrics counts;
  counts.CountSync(Result::kSuccess, milliseconds(4));
  counts.CountSync(Result::kRequeueAfter, milliseconds(30));
  counts.CountSync(Result::kError, milliseconds(6000));

  metrics::Exposition out(metrics::Format::kPrometheus, {});
  counts.AddTo(out,
               {.added = 5,
                .retried = 2,
                .queued = 3,
                .running = 1,
                .unfinished_runs = seconds(2),
                .longest_run = milliseconds(1500)},
               7, 4, false);
  const std::string text = out.Finish();

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
        "controller_runtime_max_concurrent_reconciles{controller=\"tfjob-controller\"} 4",
        "workqueue_longest_running_processor_seconds{name=\"tfjob-controller\"} 1.5",
        "workqueue_unfinished_work_seconds{name=\"tfjob-controller\"} 2",
        "workqueue_queue_duration_seconds_count{name=\"tfjob-controller\"} 0",
        "workqueue_work_duration_seconds_count{name=\"tfjob-controller\"} 0",
        "leader_election_master_status{name=\"tfjob-controller\"} 0"}) {
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
  }
}

}  // namespace
}  // namespace edl::reconciler
