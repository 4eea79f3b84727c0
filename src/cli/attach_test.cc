#include "cli/attach.h"

#include <csignal>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/fake_platform.h"
#include "client/testing/fake_master_service.h"

namespace edl::cli {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kIris = {"train", "--job_name=iris", "--job_command=true"};

job::JobView View(job::JobState state) {
  return {.name = "iris", .state = state, .started_at = 1, .ended_at = 2};
}

TEST(AttachToJob, ExitsWithOneForAFailedJobAndShowsWhy) {
  FakePlatform fake;
  fake.next.end = {.exit_code = 1};
  fake.next.end_view = View(job::JobState::kFailed);
  fake.next.end_view.reason = "worker-0 failed: exit code 7";
  fake.next.end_view.last_lines = {"boom"};

  EXPECT_EQ(fake.Run(kIris), kExitFailed);

  EXPECT_THAT(fake.out(), HasSubstr("worker-0 failed: exit code 7"));
  EXPECT_THAT(fake.out(), HasSubstr("| boom"));
}

TEST(AttachToJob, ExitsWithThreeForAJobThatAUserStopped) {
  FakePlatform fake;
  fake.next.end = {.exit_code = 3};
  fake.next.end_view = View(job::JobState::kStopped);

  EXPECT_EQ(fake.Run(kIris), kExitStopped);
}

TEST(AttachToJob, FailsWhenTheMasterExitsWithZeroButRecordedNoSuccess) {
  FakePlatform fake;
  fake.next.end_view = View(job::JobState::kRunning);

  EXPECT_EQ(fake.Run(kIris), kExitFailed);

  EXPECT_THAT(fake.out(), HasSubstr("Job iris interrupted"));
}

TEST(AttachToJob, StopsTheJobAtCtrlCAndExitsWith130) {
  FakePlatform fake;
  fake.next.ends_after_shutdowns = 1;
  fake.next.signals = {SIGINT};
  fake.next.end = {.exit_code = 3};
  fake.next.end_view = View(job::JobState::kStopped);

  EXPECT_EQ(fake.Run(kIris), 130);

  EXPECT_EQ(fake.shutdowns, 1);
  EXPECT_THAT(fake.out(), HasSubstr("stopping the job"));
  EXPECT_THAT(fake.out(), HasSubstr("--resume --job_name=iris"));
}

TEST(AttachToJob, KillsTheJobAtTheSecondCtrlC) {
  FakePlatform fake;
  fake.next.ends_after_shutdowns = 3;
  fake.next.signals = {SIGINT, SIGINT};
  fake.next.end = {.exit_code = 3};
  fake.next.end_view = View(job::JobState::kStopped);

  EXPECT_EQ(fake.Run(kIris), 130);

  EXPECT_EQ(fake.shutdowns, 3);
  EXPECT_THAT(fake.out(), HasSubstr("killing every process"));
}

// Starts a fake master for the next job that is started.
class WithMaster : public ::testing::Test {
 protected:
  WithMaster() {
    fake_.next.ends_after_shutdowns = 1;
    fake_.next.end_view = View(job::JobState::kSucceeded);
    fake_.next.on_start = [this](FakeJob& job, const JobFolder& folder) {
      master_.emplace(*folder.ReadToken());
      job::JobView running = View(job::JobState::kRunning);
      running.datasets.push_back({.epochs = 1, .records_done = 5, .records_total = 10});
      master_->SetView(running);
      job.master_address = master_->address();
    };
  }

  FakePlatform fake_;
  std::optional<client::FakeMasterService> master_;
};

using AttachToJobWithMaster = WithMaster;
using DetachFromJob = WithMaster;

TEST_F(AttachToJobWithMaster, ShowsALiveLineOnATerminalAndClearsItAtTheEnd) {
  fake_.platform().terminal.live = true;
  fake_.platform().terminal.columns = [this] {
    fake_.EndJob();
    return size_t{20};
  };

  EXPECT_EQ(fake_.Run(kIris), kExitOk);

  EXPECT_THAT(fake_.out(), HasSubstr("job iris running\n"));
  EXPECT_THAT(fake_.out(), HasSubstr("\rrunning | 50 %\x1b[K\r\x1b[KJob iris succeeded"));
}

TEST_F(AttachToJobWithMaster, CallsTheMasterFirstAtCtrlC) {
  fake_.next.end = {.exit_code = 3};
  fake_.next.end_view = View(job::JobState::kStopped);
  fake_.platform().terminal.live = true;
  int redraws = 0;
  fake_.platform().terminal.columns = [&] {
    if (++redraws == 1) fake_.SendSignal(SIGINT);
    if (!master_->stop_reason().empty()) fake_.EndJob();
    return size_t{20};
  };

  EXPECT_EQ(fake_.Run(kIris), 130);

  EXPECT_EQ(master_->stop_reason(), "stopped by the user");
  EXPECT_EQ(fake_.shutdowns, 0);
}

TEST_F(DetachFromJob, PrintsHowToReachTheJob) {
  std::vector<std::string> arguments = kIris;
  arguments.emplace_back("--detach");

  EXPECT_EQ(fake_.Run(arguments), kExitOk);

  EXPECT_TRUE(fake_.started.at(0).detach);
  EXPECT_EQ(fake_.shutdowns, 0);
  EXPECT_THAT(fake_.out(), HasSubstr("elasticdl status iris"));
}

TEST_F(DetachFromJob, ReportsAJobThatHasAlreadyEnded) {
  fake_.next.ends_after_shutdowns = 0;
  fake_.next.end = {.exit_code = 1};
  fake_.next.end_view = View(job::JobState::kFailed);
  std::vector<std::string> arguments = kIris;
  arguments.emplace_back("--detach");

  EXPECT_EQ(fake_.Run(arguments), kExitFailed);

  EXPECT_THAT(fake_.out(), HasSubstr("Job iris failed"));
}

}  // namespace
}  // namespace edl::cli
