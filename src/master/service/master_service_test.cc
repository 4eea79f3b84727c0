#include "master/service/master_service.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "elasticdl/v1/master.grpc.pb.h"
#include "master/testing/core_fixture.h"
#include "master/testing/served_master.h"

namespace edl::master {
namespace {

namespace pb = ::elasticdl::v1;
using ReportedAndLeased = pb::ReportAndLeaseResponse;

// A process of a worker, with its own connection.
class WorkerProcess {
 public:
  WorkerProcess(const ServedMaster& master, int64_t replica_id)
      : stub_(pb::Master::NewStub(master.Connect())) {
    pb::JoinRequest request;
    request.set_role("worker");
    request.set_replica_id(replica_id);
    pb::JoinResponse response;
    const grpc::Status status = stub_->Join(NewContext().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    incarnation_ = response.incarnation();
    ledger_ = response.ledger();
  }

  pb::Master::Stub& stub() { return *stub_; }
  uint64_t incarnation() const { return incarnation_; }
  uint64_t ledger() const { return ledger_; }

  pb::ReportAndLeaseRequest Request(uint64_t number, std::chrono::milliseconds wait) const {
    pb::ReportAndLeaseRequest request;
    request.set_incarnation(incarnation_);
    request.set_number(number);
    request.set_dataset(kData);
    request.set_lease_at_most(1);
    request.set_wait_ms(static_cast<uint32_t>(wait.count()));
    return request;
  }

  ReportedAndLeased ReportAndLease(const pb::ReportAndLeaseRequest& request) {
    ReportedAndLeased response;
    const grpc::Status status = stub_->ReportAndLease(NewContext().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  void Leave() {
    pb::LeaveRequest request;
    request.set_incarnation(incarnation_);
    pb::LeaveResponse response;
    EXPECT_TRUE(stub_->Leave(NewContext().get(), request, &response).ok());
  }

 private:
  std::unique_ptr<pb::Master::Stub> stub_;
  uint64_t incarnation_ = 0;
  uint64_t ledger_ = 0;
};

class MasterServiceTest : public testing::Test {
 protected:
  ServedMaster master_{WorkersOnly(2)};
};

TEST_F(MasterServiceTest, RefusesCallsOfAnotherLedger) {
  WorkerProcess worker(master_, 0);
  ASSERT_NE(worker.ledger(), 0U);
  pb::HeartbeatRequest heartbeat;
  heartbeat.set_incarnation(worker.incarnation());
  pb::HeartbeatResponse response;
  for (const uint64_t mine : {uint64_t{0}, worker.ledger()}) {
    heartbeat.set_ledger(mine);
    EXPECT_TRUE(worker.stub().Heartbeat(NewContext().get(), heartbeat, &response).ok());
  }

  heartbeat.set_ledger(worker.ledger() + 1);
  EXPECT_EQ(worker.stub().Heartbeat(NewContext().get(), heartbeat, &response).error_code(),
            grpc::StatusCode::ABORTED);
  pb::ReportAndLeaseRequest request = worker.Request(1, seconds(0));
  request.set_ledger(worker.ledger() + 1);
  ReportedAndLeased leased;
  EXPECT_EQ(worker.stub().ReportAndLease(NewContext().get(), request, &leased).error_code(),
            grpc::StatusCode::ABORTED);
}

TEST_F(MasterServiceTest, LeasesAndTakesReportsInOneCall) {
  master_.Register(Shards(2));
  WorkerProcess worker(master_, 0);

  const ReportedAndLeased first = worker.ReportAndLease(worker.Request(1, seconds(0)));
  ASSERT_EQ(first.shards_size(), 1);
  pb::ReportAndLeaseRequest request = worker.Request(2, seconds(0));
  request.set_received(1);
  request.add_reports()->set_lease(first.shards(0).lease());
  const ReportedAndLeased second = worker.ReportAndLease(request);

  EXPECT_EQ(second.verdicts_size(), 1);
  ASSERT_EQ(second.shards_size(), 1);
  EXPECT_EQ(second.shards(0).start(), 10);
}

TEST_F(MasterServiceTest, AnswersOthersWhileACallIsHeld) {
  master_.Register(Shards(1));
  WorkerProcess holder(master_, 0);
  WorkerProcess waiter(master_, 1);
  ASSERT_EQ(holder.ReportAndLease(holder.Request(1, seconds(0))).shards_size(), 1);
  auto held = std::async(std::launch::async,
                         [&] { return waiter.ReportAndLease(waiter.Request(1, seconds(60))); });
  ASSERT_OK(master_.AwaitWaiting(1));

  holder.Leave();

  EXPECT_EQ(held.get().shards_size(), 1);
}

TEST_F(MasterServiceTest, DropsTheWaitOfACallerThatDisconnected) {
  master_.Register(Shards(1));
  WorkerProcess holder(master_, 0);
  WorkerProcess impatient(master_, 1);
  ASSERT_EQ(holder.ReportAndLease(holder.Request(1, seconds(0))).shards_size(), 1);
  ReportedAndLeased response;
  const grpc::Status status = impatient.stub().ReportAndLease(
      NewContext(milliseconds(100)).get(), impatient.Request(1, seconds(60)), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ASSERT_OK(master_.AwaitWaiting(0));

  holder.Leave();

  EXPECT_EQ(impatient.ReportAndLease(impatient.Request(1, seconds(60))).shards_size(), 1);
}

TEST_F(MasterServiceTest, ShowsTheMembershipAndEachChangeToAWatcher) {
  master_.OnLoop([](Core& core) {
    core.OnReplicaEvent({.kind = job::ReplicaEvent::Kind::kSynced}, {});
    core.OnReplicaEvent({.name = NameOf(Worker(0)), .kind = job::ReplicaEvent::Kind::kRunning}, {});
  });
  WorkerProcess worker(master_, 0);
  pb::WatchRequest request;
  request.set_incarnation(worker.incarnation());
  const auto context = NewContext();
  const auto stream = worker.stub().Watch(context.get(), request);
  pb::Membership membership;
  ASSERT_TRUE(stream->Read(&membership));
  EXPECT_EQ(membership.members_size(), 1);

  master_.OnLoop([](Core& core) {
    core.OnReplicaEvent({.name = NameOf(Worker(1)), .kind = job::ReplicaEvent::Kind::kRunning}, {});
  });

  ASSERT_TRUE(stream->Read(&membership));
  EXPECT_EQ(membership.members_size(), 2);
  context->TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  master_.OnLoop([](Core& core) {  // otherwise the end of the job waits for them
    for (const ReplicaRef replica : {Worker(0), Worker(1)}) {
      core.OnReplicaEvent(
          {.name = NameOf(replica), .kind = job::ReplicaEvent::Kind::kExited, .cause = Succeeded()},
          {});
    }
  });
}

TEST_F(MasterServiceTest, ChecksTheTokenBeforeItReadsTheRequest) {
  WorkerProcess worker(master_, 0);
  pb::RestoreShardsRequest request;
  request.set_content(std::string(size_t{17} << 20, ' '));
  pb::RestoreShardsResponse response;

  // If the request were read, the error would be that it is too long.
  EXPECT_EQ(worker.stub()
                .RestoreShards(NewContext(seconds(60), "wrong").get(), request, &response)
                .error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(MasterServiceTest, RefusesADatasetWithAnUnknownTaskType) {
  WorkerProcess worker(master_, 0);
  pb::RegisterDatasetRequest request;
  request.mutable_spec()->set_name(kData);
  request.mutable_spec()->set_size(10);
  request.mutable_spec()->set_batch_size(5);
  request.mutable_spec()->set_task_type("guessing");
  pb::RegisterDatasetResponse response;

  const grpc::Status refused =
      worker.stub().RegisterDataset(NewContext().get(), request, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(refused.error_message().find("guessing"), std::string::npos);

  request.mutable_spec()->set_task_type("evaluation");
  ASSERT_TRUE(worker.stub().RegisterDataset(NewContext().get(), request, &response).ok());
  EXPECT_EQ(response.spec().task_type(), "evaluation");
}

TEST_F(MasterServiceTest, RefusesARequestThatIsTooLong) {
  WorkerProcess worker(master_, 0);
  pb::RestoreShardsRequest request;
  request.set_content(std::string(size_t{17} << 20, ' '));
  pb::RestoreShardsResponse response;
  EXPECT_EQ(worker.stub().RestoreShards(NewContext().get(), request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);

  request.set_content("{}");
  EXPECT_EQ(worker.stub().RestoreShards(NewContext().get(), request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(MasterServiceTest, RefusesWhatItCannotParseAndMethodsThatItDoesNotHave) {
  const auto channel = master_.Connect();
  const std::string service = "/" + std::string(pb::Master::service_full_name());

  const grpc::Status garbled = CallWith("\xff\xff", channel, service + "/Join", *NewContext());
  EXPECT_EQ(garbled.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(garbled.error_message().find("JoinRequest"), std::string::npos);
  const grpc::Status unknown = CallWith("", channel, service + "/Dance", *NewContext());
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_NE(unknown.error_message().find("Dance"), std::string::npos);
}

TEST_F(MasterServiceTest, RefusesCallsAndStreamsWithoutTheToken) {
  WorkerProcess worker(master_, 0);
  pb::GetJobResponse job;
  EXPECT_EQ(worker.stub().GetJob(NewContext(seconds(60), "other").get(), {}, &job).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  grpc::ClientContext bare;
  bare.set_deadline(std::chrono::system_clock::now() + seconds(60));
  EXPECT_EQ(worker.stub().GetJob(&bare, {}, &job).error_code(), grpc::StatusCode::UNAUTHENTICATED);

  const auto context = NewContext(seconds(60), "other");
  const auto stream = worker.stub().Watch(context.get(), {});
  pb::Membership membership;
  EXPECT_FALSE(stream->Read(&membership));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(MasterServiceTest, ReturnsTheCurvesThatAreAskedFor) {
  WorkerProcess worker(master_, 0);
  pb::ReportMetricsRequest report;
  report.set_step(7);
  (*report.mutable_metrics())["loss"] = 0.5;
  pb::ReportMetricsResponse reported;
  ASSERT_TRUE(worker.stub().ReportMetrics(NewContext().get(), report, &reported).ok());

  pb::GetTelemetryRequest request;
  request.add_series("program.loss");
  pb::GetTelemetryResponse response;
  ASSERT_TRUE(worker.stub().GetTelemetry(NewContext().get(), request, &response).ok());
  request.set_to(1);
  pb::GetTelemetryResponse before;
  ASSERT_TRUE(worker.stub().GetTelemetry(NewContext().get(), request, &before).ok());

  ASSERT_OK_AND_ASSIGN(const auto curves, telemetry::Curves::FromJson(response.curves_json()));
  ASSERT_EQ(curves.series.size(), 1);
  ASSERT_EQ(curves.series[0].points.size(), 1);
  EXPECT_EQ(curves.series[0].points[0].values.last, 0.5F);
  EXPECT_EQ(curves.series[0].points[0].values.step, 7);
  EXPECT_TRUE(telemetry::Curves::FromJson(before.curves_json())->series[0].points.empty());
}

TEST_F(MasterServiceTest, RefusesAWatcherThatIsNotPartOfTheJob) {
  WorkerProcess worker(master_, 0);
  pb::WatchRequest request;
  request.set_incarnation(worker.incarnation() + 1000);
  const auto context = NewContext();
  const auto stream = worker.stub().Watch(context.get(), request);
  pb::Membership membership;
  EXPECT_FALSE(stream->Read(&membership));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(MasterServiceTest, AnswersEveryMethodOfTheService) {
  // A method without a handler would hold its callers forever.
  const auto channel = master_.Connect();
  const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
      pb::Master::service_full_name());
  ASSERT_NE(service, nullptr);
  for (int i = 0; i < service->method_count(); ++i) {
    const std::string path = "/" + service->full_name() + "/" + service->method(i)->name();
    const grpc::Status status = CallWith("", channel, path, *NewContext(seconds(60), "other"));
    // Attach checks the user of the caller, and this job does not have it.
    EXPECT_EQ(status.error_code(), path.ends_with("/Attach") ? grpc::StatusCode::FAILED_PRECONDITION
                                                             : grpc::StatusCode::UNAUTHENTICATED)
        << path;
  }
}

TEST(MasterFence, HoldsAnswersBackUntilTheLedgerMayBeWritten) {
  ServedMaster master(WorkersOnly(1));
  master.Register(Shards(10));
  WorkerProcess worker(master, 0);
  master.SetFenced(true);

  pb::ReportAndLeaseResponse late;
  const grpc::Status held = worker.stub().ReportAndLease(
      NewContext(std::chrono::milliseconds(300)).get(), worker.Request(1, milliseconds(0)), &late);
  EXPECT_EQ(held.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  master.SetFenced(false);

  EXPECT_EQ(worker.ReportAndLease(worker.Request(1, milliseconds(0))).shards_size(), 1);
}

}  // namespace
}  // namespace edl::master
