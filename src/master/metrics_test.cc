#include "master/metrics.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string MetricsOf(CoreFixture& master) {
  const Histogram rounds;
  const Histogram commits;
  metrics::Exposition out(metrics::Format::kPrometheus, {{"job_name", kJob}});
  AddMetrics(master.core(), {.rounds = rounds, .commits = commits}, out);
  return out.Finish();
}

TEST(MasterMetrics, ShowTheStateOfTheJobAndItsReplicas) {
  CoreFixture master(WorkersOnly(3));
  master.StartReplicas();
  const std::string text = MetricsOf(master);
  EXPECT_THAT(text, HasSubstr("elasticdl_job_state{job_name=\"iris\",state=\"running\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl_job_state{job_name=\"iris\",state=\"failed\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl_replicas{job_name=\"iris\",role=\"worker\","
                              "state=\"running\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl_replicas{job_name=\"iris\",role=\"worker\","
                              "state=\"pending\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl_master_starts_total{job_name=\"iris\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl_master_round_seconds_count{job_name=\"iris\"} 0\n"));
}

TEST(MasterMetrics, CountRecordsAndShardsOfEachDataset) {
  CoreFixture master;
  master.Register(Shards(3));
  OurClient worker(master, Worker(0));
  const std::vector<LeasedShard> leased = worker.LeaseMany(2);
  ASSERT_EQ(worker.Report(leased.front()), ReportVerdict::kAccepted);

  const std::string text = MetricsOf(master);
  const std::string labels = "{job_name=\"iris\",dataset=\"train\",task_type=\"training\"}";
  EXPECT_THAT(text, HasSubstr("elasticdl_dataset_records" + labels + " 30\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl_dataset_records_done_total" + labels + " 10\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl_dataset_shards_done_total" + labels + " 1\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl_dataset_shards_leased" + labels + " 1\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl_job_batches_total{job_name=\"iris\"} 2\n"));
}

TEST(MasterMetrics, ADatasetWithoutEndHasNoNumberOfRecords) {
  CoreFixture master;
  master.Register(Shards(3, /*epochs=*/-1));
  const std::string text = MetricsOf(master);
  EXPECT_THAT(text, HasSubstr("elasticdl_dataset_epoch{"));
  EXPECT_THAT(text, Not(HasSubstr("elasticdl_dataset_records{")));
}

TEST(MasterMetrics, ShowWhatTheProgramReportsUpToALimitOfNames) {
  CoreFixture master;
  std::map<std::string, double> reported = {{"aa", std::numeric_limits<double>::quiet_NaN()},
                                            {"loss", 0.25}};
  for (int i = 0; i < 100; ++i) reported[fmt::format("z{:03}", i)] = i;
  master.core().OnMetrics(7, reported);
  const std::string text = MetricsOf(master);
  EXPECT_THAT(text, HasSubstr("elasticdl_program_metric{job_name=\"iris\",metric=\"aa\"} NaN\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl_program_metric{job_name=\"iris\",metric=\"loss\"} 0.25"));
  EXPECT_THAT(text, HasSubstr("elasticdl_program_metric{job_name=\"iris\",metric=\"step\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("metric=\"z060\""));
  EXPECT_THAT(text, Not(HasSubstr("metric=\"z061\"")));
}

TEST(MasterMetrics, HaveNoParameterServersInAJobWithoutOurs) {
  CoreFixture master;
  EXPECT_THAT(MetricsOf(master), Not(HasSubstr("elasticdl_ps_up")));
}

}  // namespace
}  // namespace edl::master
