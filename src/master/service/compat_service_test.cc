#include "master/service/compat_service.h"

#include <memory>
#include <string>

#include "compat/elasticai_api.grpc.pb.h"
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"
#include "master/testing/served_master.h"

namespace edl::master {
namespace {

namespace pb = ::proto;

class CompatServiceTest : public testing::Test {
 protected:
  size_t Leases() {
    size_t leases = 0;
    master_.OnLoop([&](Core& core) { leases = core.dispatcher().leases().size(); });
    return leases;
  }
  static pb::GetDatasetTaskRequest Fetch(int worker) {
    pb::GetDatasetTaskRequest request;
    request.set_worker_id(worker);
    request.set_dataset_name(kData);
    return request;
  }

  ServedMaster master_{WorkersOnly(2)};
  std::unique_ptr<pb::Master::Stub> stub_ = pb::Master::NewStub(master_.Connect());
};

TEST_F(CompatServiceTest, LeasesAndTakesReports) {
  master_.Register(Shards(1));
  pb::Task task;
  ASSERT_TRUE(stub_->get_dataset_task(NewContext().get(), Fetch(0), &task).ok());
  EXPECT_EQ(task.shard().end(), 10);
  EXPECT_EQ(Leases(), 1U);

  pb::ReportDatasetTaskResultRequest report;
  report.set_dataset_name(kData);
  report.set_task_id(task.task_id());
  google::protobuf::Empty empty;
  ASSERT_TRUE(stub_->report_dataset_task_result(NewContext().get(), report, &empty).ok());

  EXPECT_EQ(Leases(), 0U);
}

TEST_F(CompatServiceTest, GivesTheShardOfACallerThatDisconnectedToAnother) {
  master_.Register(Shards(1));
  pb::Task task;
  ASSERT_TRUE(stub_->get_dataset_task(NewContext().get(), Fetch(0), &task).ok());
  pb::Task none;
  EXPECT_EQ(
      stub_->get_dataset_task(NewContext(milliseconds(100)).get(), Fetch(1), &none).error_code(),
      grpc::StatusCode::DEADLINE_EXCEEDED);
  ASSERT_OK(master_.AwaitWaiting(0));

  pb::ReportDatasetTaskResultRequest failed;
  failed.set_dataset_name(kData);
  failed.set_task_id(task.task_id());
  failed.set_err_message("bad record");
  google::protobuf::Empty empty;
  ASSERT_TRUE(stub_->report_dataset_task_result(NewContext().get(), failed, &empty).ok());
  ASSERT_TRUE(stub_->get_dataset_task(NewContext().get(), Fetch(1), &task).ok());

  EXPECT_EQ(task.shard().end(), 10);
}

TEST_F(CompatServiceTest, AnswersEveryMethodOfItsServices) {
  // A method without a handler would hold its callers forever.
  job::JobSpec closed = WorkersOnly(1);
  closed.compat_api = false;
  const ServedMaster refusing(closed);
  const auto channel = refusing.Connect();
  for (const char* name :
       {pb::Master::service_full_name(), pb::TrainLoopMaster::service_full_name()}) {
    const auto* service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
    ASSERT_NE(service, nullptr);
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string path = "/" + service->full_name() + "/" + service->method(i)->name();
      const grpc::Status status = CallWith("", channel, path, *NewContext());
      EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << path;
    }
  }
}

// A view in which only the number of records changes is shown too, for readers that cannot call the
// master.
TEST(Loop, ShowsProgressWhileNothingElseChanges) {
  ServedMaster master(WorkersOnly(1));
  master.OnLoop(
      [](Core& core) { core.OnReplicaEvent({.kind = job::ReplicaEvent::Kind::kSynced}, {}); });
  master.Register(Shards(2));
  LeasedShard leased;
  master.OnLoop([&](Core& core) {
    core.compat_api().Fetch(
        1, Worker(0), kData,
        [&](const Result<std::optional<LeasedShard>>& shard) { leased = shard.value().value(); });
  });

  master.OnLoop([&](Core& core) { core.compat_api().ReportTask(kData, leased.task, ""); });

  ASSERT_OK(master.AwaitShown(2));  // batches
}

}  // namespace
}  // namespace edl::master
