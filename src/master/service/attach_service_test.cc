#include "master/service/attach_service.h"

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "backend/testing/fake_backend.h"
#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "elasticdl/v1/master.grpc.pb.h"
#include "master/testing/model_fixture.h"
#include "master/testing/served_master.h"

namespace edl::master {
namespace {

namespace pb = ::elasticdl::v1;

job::JobSpec AttachSpec(int num_workers) {
  job::JobSpec spec = ModelSpecOf(num_workers);
  spec.attach_workers = true;
  return spec;
}

// An Attach call of a process with its own connection.
class AttachedProcess {
 public:
  explicit AttachedProcess(const ServedMaster& master, const std::string& token = "")
      : stub_(pb::Master::NewStub(master.Connect())) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    pb::AttachRequest request;
    request.set_process("here:1");
    stream_ = stub_->Attach(&context_, request);
  }

  // The next message; empty if the stream has ended.
  pb::AttachResponse Read() {
    pb::AttachResponse notice;
    if (!stream_->Read(&notice)) notice.Clear();
    return notice;
  }
  grpc::Status Finish() { return stream_->Finish(); }
  void Disconnect() { context_.TryCancel(); }
  grpc::Status Detach(const std::string& name, int exit_code, const std::string& token) {
    pb::DetachRequest request;
    request.set_name(name);
    request.set_exit_code(exit_code);
    pb::DetachResponse response;
    return stub_->Detach(NewContext(std::chrono::seconds(60), token).get(), request, &response);
  }

 private:
  std::unique_ptr<pb::Master::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<pb::AttachResponse>> stream_;
};

class AttachServiceTest : public testing::Test {
 protected:
  AttachServiceTest() { Serve(AttachSpec(1)); }

  void Serve(const job::JobSpec& spec) {
    master_.reset();
    backend_ = std::make_unique<backend::AttachedBackend>(std::make_unique<backend::FakeBackend>());
    master_ = std::make_unique<ServedMaster>(spec, "127.0.0.1:0", backend_.get());
  }

  // Waits until a replica of this name is in this state.
  Status AwaitState(const std::string& name, job::ReplicaState state) {
    return AwaitPolling(name + " is " + std::string(job::NameOf(state)), [&] {
      bool reached = false;
      master_->OnLoop([&](Core& core) {
        const auto* replica = core.keeper().Find(name);
        reached = replica != nullptr && replica->row.state == state;
      });
      return reached;
    });
  }

  std::unique_ptr<backend::AttachedBackend> backend_;
  std::unique_ptr<ServedMaster> master_;
};

TEST_F(AttachServiceTest, MakesACallerWithoutATokenTheFirstWorker) {
  AttachedProcess process(*master_);

  const pb::AttachResponse first = process.Read();

  ASSERT_TRUE(first.has_run());
  EXPECT_EQ(first.run().name(), AttachSpec(1).ReplicaName(job::Role::kWorker, 0));
  EXPECT_EQ(first.run().replica_id(), 0);
  EXPECT_EQ(first.run().token(), ServedMaster::kToken);
  EXPECT_EQ(first.run().command_size(), 3);
  EXPECT_EQ(first.run().env().at("WORKER_TYPE"), "worker");
  EXPECT_OK(AwaitState(first.run().name(), job::ReplicaState::kRunning));
}

TEST_F(AttachServiceTest, AddsAWorkerForEachFurtherCaller) {
  AttachedProcess one(*master_);
  AttachedProcess two(*master_);
  AttachedProcess three(*master_);

  std::set<int64_t> ids;
  for (AttachedProcess* process : {&one, &two, &three})
    ids.insert(process->Read().run().replica_id());

  EXPECT_EQ(ids, (std::set<int64_t>{0, 1, 2}));
  master_->OnLoop([](Core& core) { EXPECT_EQ(core.keeper().WantedWorkers(), 3); });
}

TEST_F(AttachServiceTest, ReplacesAWorkerWhoseCallerDisconnectedByTheNextCaller) {
  AttachedProcess lost(*master_);
  const std::string name = lost.Read().run().name();

  lost.Disconnect();
  ASSERT_OK(AwaitState(name, job::ReplicaState::kKilled));
  AttachedProcess next(*master_);

  EXPECT_EQ(next.Read().run().replica_id(), 1);
  master_->OnLoop([](Core& core) { EXPECT_EQ(core.keeper().WantedWorkers(), 1); });
}

TEST_F(AttachServiceTest, TakesTheExitCodeOfAWorker) {
  AttachedProcess process(*master_);
  const std::string name = process.Read().run().name();

  EXPECT_EQ(process.Detach(name, 3, "wrong").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  ASSERT_TRUE(process.Detach(name, 3, ServedMaster::kToken).ok());
  process.Disconnect();

  ASSERT_OK(AwaitState(name, job::ReplicaState::kFailed));
  master_->OnLoop(
      [&](Core& core) { EXPECT_EQ(core.keeper().Find(name)->row.reason, "exit code 3"); });
}

TEST_F(AttachServiceTest, StopsAWorkerOverItsStream) {
  AttachedProcess one(*master_);
  ASSERT_EQ(one.Read().run().replica_id(), 0);
  AttachedProcess two(*master_);
  ASSERT_EQ(two.Read().run().replica_id(), 1);
  ASSERT_OK(
      AwaitState(AttachSpec(1).ReplicaName(job::Role::kWorker, 1), job::ReplicaState::kRunning));

  master_->OnLoop([](Core& core) { EXPECT_OK(core.Scale(1)); });

  const pb::AttachResponse stop = two.Read();
  ASSERT_TRUE(stop.has_stop());
  EXPECT_EQ(stop.stop().grace_ms(), ReplicaKeeper::kStopGrace.count());
  EXPECT_FALSE(two.Read().has_run()) << "the process does not stop, so the master ends the stream";
  EXPECT_EQ(two.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(AttachServiceTest, NeedsTheTokenIfTheJobHasATokenFile) {
  job::JobSpec spec = AttachSpec(1);
  spec.token_file = "token";
  Serve(spec);

  AttachedProcess without(*master_);
  const grpc::Status refused = without.Finish();
  AttachedProcess wrong(*master_, "guess");
  AttachedProcess with(*master_, ServedMaster::kToken);

  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_NE(refused.error_message().find("--token_file"), std::string::npos);
  EXPECT_EQ(wrong.Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(with.Read().has_run());
}

TEST_F(AttachServiceTest, RefusesACallerWhenTheJobIsEnding) {
  AttachedProcess running(*master_);
  ASSERT_OK(AwaitState(running.Read().run().name(), job::ReplicaState::kRunning));
  master_->OnLoop([](Core& core) { core.Stop("enough"); });

  AttachedProcess late(*master_);

  const grpc::Status refused = late.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(refused.error_message().find("no work is left"), std::string::npos);
}

TEST(AttachService, RefusesAJobThatStartsItsWorkersItself) {
  const ServedMaster master(ModelSpecOf(1));

  AttachedProcess process(master, ServedMaster::kToken);

  const grpc::Status refused = process.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(refused.error_message().find("--attach_workers=true"), std::string::npos);
}

}  // namespace
}  // namespace edl::master
