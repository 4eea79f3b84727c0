#include "cli/verbs.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "cli/testing/fake_platform.h"
#include "client/testing/fake_master_service.h"

namespace edl::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

job::JobView View(std::string name, job::JobState state) {
  return {.name = std::move(name), .state = state, .started_at = 1, .ended_at = 2};
}

TEST(Status, CallsTheMasterOfARunningJob) {
  client::FakeMasterService master("secret");
  job::JobView live = View("iris", job::JobState::kFinishing);
  live.version = 99;
  master.SetView(live);
  FakePlatform fake;
  fake.AddRunningJob(View("iris", job::JobState::kStarting), master.address(), "secret");

  ASSERT_EQ(fake.Run({"status", "iris", "--output=json"}), kExitOk) << fake.err();

  EXPECT_EQ(json::parse(fake.out())["state"], "finishing");
  EXPECT_EQ(json::parse(fake.out())["version"], 99);
}

TEST(Status, ShowsTheLastViewWhenTheMasterDoesNotAnswer) {
  std::string address;
  {
    client::FakeMasterService master("secret");
    address = master.address();
  }
  FakePlatform fake;
  fake.AddRunningJob(View("iris", job::JobState::kRunning), address, "secret");

  ASSERT_EQ(fake.Run({"status", "iris"}), kExitOk) << fake.err();

  EXPECT_THAT(fake.out(), HasSubstr("the master does not answer"));
}

TEST(Status, ShowsAJobAsInterruptedThatEndedWithoutAnOutcome) {
  FakePlatform fake;
  fake.AddJob(View("iris", job::JobState::kRunning));

  ASSERT_EQ(fake.Run({"status", "iris", "--output=json"}), kExitOk);

  EXPECT_EQ(json::parse(fake.out())["state"], "interrupted");
}

// A job's folder whose status.json holds `text`.
void AddJobWithStatus(FakePlatform& fake, const std::string& text) {
  fake.AddJob(View("iris", job::JobState::kRunning));
  ASSERT_OK(WriteFileAtomically(fake.store().Find("iris")->path() / "status.json", text));
}

TEST(AnyStatusFile, AllowsToShowStopResumeAndDeleteTheJob) {
  for (const char* text : {"", "{", "[]", R"({"metrics": {"loss": null}})"}) {
    FakePlatform fake;
    AddJobWithStatus(fake, text);
    job::JobView known = View("iris", job::JobState::kRunning);
    known.version = 4;
    known.datasets.push_back({.name = "train", .records_done = 40});
    fake.ledgers.emplace("iris", known);

    EXPECT_EQ(fake.Run({"status", "iris", "--output=json"}), kExitOk) << text << fake.err();
    EXPECT_EQ(json::parse(fake.out())["state"], "interrupted");
    EXPECT_EQ(json::parse(fake.out())["datasets"][0]["records_done"], 40) << "from the ledger";
    EXPECT_EQ(fake.Run({"list"}), kExitOk) << fake.err();
    EXPECT_EQ(fake.Run({"stop", "iris"}), kExitOk) << fake.err();
    fake.next.end_view = View("iris", job::JobState::kStopped);
    fake.next.end = {.exit_code = kExitStopped};
    EXPECT_EQ(fake.Run({"train", "--job_name=iris", "--resume"}), kExitStopped) << fake.err();
    EXPECT_EQ(fake.Run({"delete", "iris"}), kExitOk) << fake.err();
  }
}

TEST(AnyStatusFile, ThatIsMissingIsReplacedByTheLedger) {
  FakePlatform fake;
  fake.AddJob(View("iris", job::JobState::kRunning));
  std::filesystem::remove(fake.store().Find("iris")->path() / "status.json");
  fake.ledgers.emplace("iris", View("iris", job::JobState::kSucceeded));

  EXPECT_EQ(fake.Run({"status", "iris", "--output=json"}), kExitOk) << fake.err();
  EXPECT_EQ(json::parse(fake.out())["state"], "succeeded");
  EXPECT_EQ(fake.Run({"delete", "iris"}), kExitOk) << fake.err();
}

TEST(AnyStatusFile, OfANewerVersionIsRejectedAndTheJobCanBeDeleted) {
  FakePlatform fake;
  AddJobWithStatus(fake, R"({"view_version": 99, "state": "asleep"})");

  EXPECT_EQ(fake.Run({"status", "iris"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("newer elasticdl"));
  EXPECT_EQ(fake.Run({"stop", "iris"}), kExitOk) << fake.err();
  EXPECT_EQ(fake.Run({"delete", "iris"}), kExitOk) << fake.err();
}

TEST(Interrupted, JobsShowWhyAndTheNumbersOfTheirLedger) {
  FakePlatform fake;
  job::JobView shown = View("iris", job::JobState::kRunning);
  shown.version = 2;
  shown.datasets.push_back({.name = "train", .records_done = 20});
  shown.replicas.push_back(
      {.name = "iris-edljob-worker-0", .role = "worker", .state = job::ReplicaState::kRunning});
  fake.AddJob(shown);
  job::JobView known = shown;
  known.version = 3;
  known.datasets.front().records_done = 30;
  fake.ledgers.emplace("iris", known);
  EXPECT_EQ(fake.Run({"status", "iris"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr(": its agent was killed, or the machine was shut down"));
  EXPECT_THAT(fake.out(), HasSubstr("30"));

  const auto folder = fake.store().Find("iris")->path();
  ASSERT_OK(
      WriteFileAtomically(folder / "end.json", R"({"exit_code": 1, "reason": "port taken"})"));
  EXPECT_EQ(fake.Run({"status", "iris", "--output=json"}), kExitOk);
  EXPECT_EQ(json::parse(fake.out())["reason"], "port taken");
  EXPECT_EQ(json::parse(fake.out())["replicas"][0]["state"], "interrupted");
  EXPECT_EQ(fake.Run({"list"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr("port taken"));

  fake.AddLog("iris", "master", "[t] [ERROR] [b.cc:2:g] the ledger is damaged\n");
  ASSERT_OK(WriteFileAtomically(folder / "end.json", R"({"exit_code": 2, "reason": ""})"));
  EXPECT_EQ(fake.Run({"status", "iris"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr(": the ledger is damaged"));
}

TEST(Status, OfAMissingJobFails) {
  FakePlatform fake;
  EXPECT_EQ(fake.Run({"status", "iris"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("there is no job iris"));
}

TEST(List, ShowsEveryJob) {
  FakePlatform fake;
  EXPECT_EQ(fake.Run({"list"}), kExitOk);
  EXPECT_EQ(fake.out(), "There are no jobs.\n");
  fake.AddJob(View("b", job::JobState::kSucceeded));
  fake.AddJob(View("a", job::JobState::kRunning));

  ASSERT_EQ(fake.Run({"list", "--output=json"}), kExitOk);
  const json jobs = json::parse(fake.out());
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0]["name"], "a");
  EXPECT_EQ(jobs[0]["state"], "interrupted");
  EXPECT_EQ(jobs[1]["state"], "succeeded");
  ASSERT_EQ(fake.Run({"status"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr("JOB  STATE"));
}

TEST(Logs, PrintsTheOutputOfOneReplicaUnchanged) {
  FakePlatform fake;
  fake.AddJob(View("iris", job::JobState::kSucceeded));
  fake.AddLog("iris", "iris-edljob-worker-0", "one\ntwo");

  ASSERT_EQ(fake.Run({"logs", "iris", "worker-0", "-f"}), kExitOk);
  EXPECT_EQ(fake.out(), "one\ntwo");
  ASSERT_EQ(fake.Run({"logs", "iris", "iris-edljob-worker-0"}), kExitOk);
  EXPECT_EQ(fake.out(), "one\ntwo");
}

TEST(Logs, LabelsTheLinesOfSeveralReplicas) {
  FakePlatform fake;
  fake.AddJob(View("iris", job::JobState::kSucceeded));
  fake.AddLog("iris", "iris-edljob-ps-0", "p\n");
  fake.AddLog("iris", "iris-edljob-worker-0", "one\ntwo");
  fake.AddLog("iris", "master", "m\n");

  ASSERT_EQ(fake.Run({"logs", "iris"}), kExitOk);

  EXPECT_EQ(fake.out(), "ps-0 | p\nworker-0 | one\nworker-0 | two\n");
}

TEST(Logs, ListsTheReplicasIfTheGivenOneDoesNotExist) {
  FakePlatform fake;
  fake.AddJob(View("iris", job::JobState::kSucceeded));
  fake.AddLog("iris", "iris-edljob-worker-0", "one");
  fake.AddLog("iris", "master", "m");

  EXPECT_EQ(fake.Run({"logs", "iris", "worker-1"}), kExitFailed);

  EXPECT_THAT(fake.err(), HasSubstr("has no log of worker-1; it has logs of worker-0, master"));
}

TEST(Scale, CallsTheMaster) {
  client::FakeMasterService master("secret");
  FakePlatform fake;
  fake.AddRunningJob(View("iris", job::JobState::kRunning), master.address(), "secret");

  EXPECT_EQ(fake.Run({"scale", "iris", "--num_workers=5"}), kExitOk) << fake.err();

  EXPECT_EQ(master.scaled_to(), 5);
  EXPECT_EQ(fake.Run({"scale", "iris"}), kExitUsage);
  EXPECT_EQ(fake.Run({"scale", "iris", "--num_workers=-2"}), kExitUsage);
}

TEST(Scale, NeedsARunningJob) {
  FakePlatform fake;
  fake.AddJob(View("iris", job::JobState::kSucceeded));
  EXPECT_EQ(fake.Run({"scale", "iris", "--num_workers=5"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("job iris is not running"));
}

TEST(Stop, EndsAJobWhoseMasterDoesNotAnswerThroughItsAgent) {
  FakePlatform fake;
  fake.AddRunningJob(View("iris", job::JobState::kRunning), "127.0.0.1:1", "t");

  EXPECT_EQ(fake.Run({"stop", "iris"}), kExitOk) << fake.err();

  EXPECT_EQ(fake.shutdowns, 1);
  EXPECT_THAT(fake.out(), HasSubstr("job iris: interrupted"));
}

TEST(Stop, SucceedsForAJobThatDoesNotRun) {
  FakePlatform fake;
  fake.AddJob(View("iris", job::JobState::kFailed));
  EXPECT_EQ(fake.Run({"stop", "iris"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr("job iris is not running: failed"));
}

TEST(Delete, RejectsARunningJob) {
  FakePlatform fake;
  fake.AddRunningJob(View("iris", job::JobState::kRunning), "127.0.0.1:1", "t");
  EXPECT_EQ(fake.Run({"delete", "iris"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("stop it first"));
}

TEST(Logs, ContinueWithTheReplicaThatReplacesAnotherOne) {
  client::FakeMasterService master("secret");
  job::JobView view = View("iris", job::JobState::kRunning);
  view.replicas = {{.name = "iris-edljob-worker-0", .role = "worker", .index = 0, .id = 0},
                   {.name = "iris-edljob-worker-1", .role = "worker", .index = 1, .id = 1},
                   {.name = "iris-edljob-worker-2", .role = "worker", .index = 0, .id = 2}};
  master.SetView(view);
  FakePlatform fake;
  fake.AddRunningJob(view, master.address(), "secret");
  fake.AddLog("iris", "iris-edljob-worker-0", "first\n");
  fake.AddLog("iris", "iris-edljob-worker-1", "another slot\n");
  fake.AddLog("iris", "iris-edljob-worker-2", "second\n");
  fake.on_log = [&](const std::string& name) {
    if (name == "iris-edljob-worker-2") fake.EndJobNamed("iris");
  };

  EXPECT_EQ(fake.Run({"logs", "iris", "worker-0", "-f"}), kExitOk);

  EXPECT_EQ(fake.out(), "first\n==> worker-2 replaces worker-0 <==\nsecond\n");
}

TEST(Stop, ExplainsWhatToDoAboutAStoppedAgent) {
  FakePlatform fake;
  fake.AddRunningJob(View("iris", job::JobState::kRunning), "127.0.0.1:1", "t");
  fake.agent = {.process_id = 4711, .stopped = true};

  EXPECT_EQ(fake.Run({"stop", "iris"}), kExitFailed);

  EXPECT_THAT(fake.err(), HasSubstr("process 4711, is stopped"));
  EXPECT_THAT(fake.err(), HasSubstr("kill -CONT 4711"));
  EXPECT_EQ(fake.shutdowns, 0);
}

TEST(Output, IsJsonForAllVerbsThatChangeAJob) {
  FakePlatform fake;
  fake.AddRunningJob(View("iris", job::JobState::kRunning), "127.0.0.1:1", "t");
  fake.AddJob(View("old", job::JobState::kSucceeded));

  EXPECT_EQ(fake.Run({"stop", "iris", "--output=json"}), kExitOk) << fake.err();
  EXPECT_EQ(json::parse(fake.out()).at("job"), "iris");
  EXPECT_EQ(json::parse(fake.out()).at("state"), "interrupted");
  EXPECT_EQ(fake.Run({"delete", "old", "--output=json"}), kExitOk) << fake.err();
  EXPECT_EQ(json::parse(fake.out()).at("state"), "deleted");
}

TEST(Output, OfTheLedgerAcceptsTheFlag) {
  FakePlatform fake;
  fake.AddJob(View("old", job::JobState::kSucceeded));
  EXPECT_EQ(fake.Run({"ledger", "old", "--output=json"}), kExitOk) << fake.err();
}

TEST(Output, ThatCannotBeWrittenIsAFailure) {
  FakePlatform fake;
  fake.platform().out.setstate(std::ios::badbit);
  EXPECT_EQ(fake.Run({"list"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("cannot write the output"));
}

TEST(Flags, ThatAreRepeatedGiveAWarning) {
  FakePlatform fake;
  fake.AddJob(View("old", job::JobState::kSucceeded));
  EXPECT_EQ(fake.Run({"status", "old", "--output=text", "--output=json"}), kExitOk);
  EXPECT_THAT(fake.err(), HasSubstr("--output is given more than once; only the last value, "
                                    "--output=json, is used"));
  EXPECT_EQ(fake.Run({"status", "old", "--output=json", "--output=json"}), kExitOk);
  EXPECT_EQ(fake.err(), "");
}

TEST(Ledger, ComesFromTheMasterOfARunningJobElseFromTheFile) {
  client::FakeMasterService master("secret");
  master.SetLedger("{\"live\": true}");
  FakePlatform fake;
  fake.AddRunningJob(View("iris", job::JobState::kRunning), master.address(), "secret");
  fake.AddJob(View("old", job::JobState::kSucceeded));

  EXPECT_EQ(fake.Run({"ledger", "iris"}), kExitOk);
  EXPECT_EQ(fake.out(), "{\"live\": true}\n");
  EXPECT_EQ(fake.Run({"ledger", "old"}), kExitOk);
  EXPECT_EQ(fake.out(), "ledger at ledger.sqlite\n");
}

TEST(Version, IsPrinted) {
  FakePlatform fake;
  EXPECT_EQ(fake.Run({"--version"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr("elasticdl 2."));
  EXPECT_EQ(fake.Run({"version", "--output=json"}), kExitOk);
  EXPECT_TRUE(json::parse(fake.out()).contains("version"));
}

}  // namespace
}  // namespace edl::cli
