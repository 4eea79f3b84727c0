#include "master/model/model_job.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/model_fixture.h"

namespace edl::master {
namespace {

using job::JobState;
using job::ModelJobType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A job whose replicas run and whose parameter server serves. A shard has two batches.
class ModelJobs : public testing::Test {
 protected:
  void Start(job::JobSpec spec) {
    master_.emplace(std::move(spec));
    servers_.emplace(*master_);
    master_->StartReplicas();
    servers_->Serve();
  }
  void ExitAll(int workers) {
    for (int id = 0; id < workers; ++id) {
      master_->Exit(master_->spec().ReplicaName(job::Role::kWorker, id), Succeeded());
    }
    servers_->Serve();
    for (const std::string& name : master_->TakeStops()) master_->Exit(name, Killed());
    master_->Tick();
  }
  std::vector<int64_t> Evaluated() const {
    std::vector<int64_t> versions;
    for (const auto& one : master_->core().View().evaluations) versions.push_back(one.version);
    return versions;
  }

  std::optional<CoreFixture> master_;
  std::optional<ObedientServers> servers_;
};

job::JobSpec WithEvaluation(int workers, int64_t steps = 0) {
  job::JobSpec spec = ModelSpecOf(workers);
  spec.model->validation_data = "test";
  spec.model->evaluation_steps = steps;
  return spec;
}

TEST_F(ModelJobs, LeadFromTrainingToTheLastEvaluationAndTheExport) {
  job::JobSpec spec = WithEvaluation(1);
  spec.model->output = "saved_model";
  Start(spec);
  ModelWorker worker(*master_, 0, "training");
  worker.Register(2, 2);

  EXPECT_THAT(worker.RunToTheEnd(*servers_),
              ElementsAre("training", "training", "evaluation", "evaluation", "evaluation_merge",
                          "export"));

  EXPECT_EQ(master_->core().View().version, 4);
  EXPECT_THAT(Evaluated(), ElementsAre(4));
  EXPECT_EQ(master_->core().View().evaluation, "accuracy = 0.5 (version 4)");
  ExitAll(1);
  EXPECT_EQ(master_->state(), JobState::kSucceeded) << master_->core().View().reason;
}

TEST_F(ModelJobs, RecordEachEvaluationOnceAsACurve) {
  const telemetry::Query accuracy{.series = {"evaluation.accuracy"}};
  Start(WithEvaluation(1));
  ModelWorker worker(*master_, 0, "training");
  worker.Register(2, 2);
  worker.RunToTheEnd(*servers_);

  const telemetry::Curves curves = master_->core().Telemetry(accuracy);
  ASSERT_THAT(curves.series, SizeIs(1));
  ASSERT_THAT(curves.series[0].points, SizeIs(1));
  EXPECT_EQ(curves.series[0].points[0].values.last, 0.5F);
  EXPECT_EQ(curves.series[0].points[0].values.step, 4);

  // No time has passed, so the ledger has the evaluation but no curves.
  master_->CrashAndReload();
  EXPECT_THAT(Evaluated(), ElementsAre(4));
  EXPECT_THAT(master_->core().Telemetry(accuracy).series, IsEmpty());
}

TEST_F(ModelJobs, NameTheVersionOfAnEvaluationInItsShards) {
  Start(WithEvaluation(1, 2));
  ModelWorker worker(*master_, 0, "training");
  worker.Register(2, 1);
  worker.Step();

  const ReportAndLeaseReply answer = worker.Step();
  EXPECT_EQ(answer.answer, LeaseAnswer::kWait);
  EXPECT_EQ(answer.next_dataset, "evaluation");
  const ReportAndLeaseReply evaluation = worker.Step();

  ASSERT_THAT(evaluation.shards, SizeIs(1));
  EXPECT_EQ(evaluation.shards[0].version, 2);
}

TEST_F(ModelJobs, OpenAnEvaluationAtTheFirstVersionAtOrAboveEachMultiple) {
  Start(WithEvaluation(1, 3));
  ModelWorker worker(*master_, 0, "training");
  worker.Register(5, 1);

  worker.RunToTheEnd(*servers_);

  // After two batches each: 3 and 6 are passed at 4 and 6, 9 at 10, where training ends.
  EXPECT_THAT(Evaluated(), ElementsAre(4, 6, 10));
}

TEST_F(ModelJobs, AnswerWaitAtOnceToARequestForAnotherDataset) {
  Start(WithEvaluation(1));
  ModelWorker worker(*master_, 0, "evaluation");
  worker.Register(1, 1);

  const Later<ReportAndLeaseReply> answer = worker.Hold();

  ASSERT_TRUE(answer.answered());
  EXPECT_EQ(answer->answer, LeaseAnswer::kWait);
  EXPECT_EQ(answer->next_dataset, "training");
}

TEST_F(ModelJobs, AnswerHeldCallsWithWaitWhenTheNextDatasetChanges) {
  Start(WithEvaluation(2));
  ModelWorker one(*master_, 0, "training");
  ModelWorker other(*master_, 1, "training");
  one.Register(1, 2);
  one.Step();
  const Later<ReportAndLeaseReply> held = other.Hold();
  EXPECT_FALSE(held.answered());

  one.Step();  // reports the last shard
  servers_->Serve();

  ASSERT_TRUE(held.answered());
  EXPECT_EQ(held->answer, LeaseAnswer::kWait);
  EXPECT_EQ(held->next_dataset, "evaluation");
}

TEST_F(ModelJobs, DoNotMergeTheNextEvaluationBeforeItIsEvaluated) {
  Start(WithEvaluation(2, 2));
  ModelWorker one(*master_, 0, "training");
  ModelWorker other(*master_, 1, "training");
  one.Register(2, 1);
  one.Step();
  other.Step();
  one.Step();    // version 2 opens an evaluation
  one.Step();    // leases its only shard
  other.Step();  // reports the last shard of training
  servers_->Serve();
  one.Step();  // reports that shard
  one.Step();  // leases the merge
  ASSERT_THAT(one.held(), SizeIs(1));
  other.Step();
  const Later<ReportAndLeaseReply> held = other.Hold();
  EXPECT_FALSE(held.answered());

  one.Step();  // reports the merge, and so opens the last evaluation

  ASSERT_TRUE(held.answered());
  EXPECT_THAT(held->shards, IsEmpty());
  EXPECT_EQ(held->next_dataset, "evaluation");
}

TEST_F(ModelJobs, LetOthersTrainWhileTheLastPartsAreEvaluated) {
  Start(WithEvaluation(2, 2));
  ModelWorker one(*master_, 0, "training");
  ModelWorker other(*master_, 1, "training");
  one.Register(4, 1);
  one.Step();
  one.Step();  // version 2 opens an evaluation
  EXPECT_THAT(one.Step().shards, SizeIs(1));

  EXPECT_EQ(other.Step().next_dataset, "training");
  EXPECT_THAT(other.held(), SizeIs(1));
}

TEST_F(ModelJobs, WaitForTheRegistrationOfTheEvaluation) {
  Start(WithEvaluation(1));
  ModelWorker worker(*master_, 0, "training");
  worker.Register(1);
  worker.Step();
  worker.Step();
  servers_->Serve();

  const ReportAndLeaseReply answer = worker.Step();
  EXPECT_EQ(answer.next_dataset, "evaluation");
  EXPECT_EQ(worker.Step().answer, LeaseAnswer::kUnknownDataset);
  worker.Register(0, 1);

  worker.RunToTheEnd(*servers_);
  EXPECT_THAT(Evaluated(), ElementsAre(2));
}

TEST_F(ModelJobs, RepeatAnEvaluationWhenParametersAreRestored) {
  Start(WithEvaluation(1));
  ModelWorker worker(*master_, 0, "training");
  worker.Register(1, 2);
  while (worker.next_dataset() != "evaluation") {
    worker.Step();
    servers_->Serve();
  }
  const ReportAndLeaseReply before = worker.Step();
  ASSERT_THAT(before.shards, SizeIs(1));

  servers_->Lose(0);

  EXPECT_EQ(servers_->restores(), 2);
  EXPECT_THAT(worker.Step().verdicts, ElementsAre(ReportVerdict::kLost));
  EXPECT_GT(worker.held().at(0).generation, before.shards[0].generation);
  EXPECT_THAT(worker.RunToTheEnd(*servers_), ElementsAre("evaluation", "evaluation_merge"));
  EXPECT_THAT(Evaluated(), ElementsAre(2));
}

TEST_F(ModelJobs, EndTrainingAtMaxStep) {
  job::JobSpec spec = WithEvaluation(1);
  spec.max_step = 3;
  spec.model->output = "saved_model";
  Start(spec);
  ModelWorker worker(*master_, 0, "training");
  worker.Register(10, 1);

  EXPECT_THAT(worker.RunToTheEnd(*servers_),
              ElementsAre("training", "training", "evaluation", "evaluation_merge", "export"));

  EXPECT_EQ(master_->Data("training").records_not_trained, 80);
  EXPECT_THAT(Evaluated(), ElementsAre(4));
  ExitAll(1);
  EXPECT_EQ(master_->state(), JobState::kSucceeded) << master_->core().View().reason;
  EXPECT_THAT(master_->core().View().success_rule, HasSubstr("--max_step=3"));
}

TEST_F(ModelJobs, TrainWhatWasLostAgainAfterMaxStep) {
  job::JobSpec spec = ModelSpecOf(1);
  spec.max_step = 2;
  Start(spec);
  ModelWorker worker(*master_, 0, "training");
  worker.Register(10);
  worker.Step();
  servers_->FailNextSave(Unavailable("not now"));
  worker.Step();  // version 2: training ends, but nothing of it is saved

  servers_->Lose(0);

  EXPECT_THAT(worker.Step().shards, SizeIs(1));
  worker.Step();
  EXPECT_FALSE(worker.finished());
  master_->LetPass(seconds(31));  // until a save is tried again
  EXPECT_THAT(worker.RunToTheEnd(*servers_), IsEmpty());
  EXPECT_EQ(master_->core().View().version, 2) << "a shard counts once";
}

TEST_F(ModelJobs, LetLeasedShardsEndAfterMaxStep) {
  job::JobSpec spec = ModelSpecOf(2);
  spec.max_step = 2;
  Start(spec);
  ModelWorker one(*master_, 0, "training");
  ModelWorker other(*master_, 1, "training");
  one.Register(10);
  one.Step();
  other.Step();
  one.Step();
  servers_->Serve();
  EXPECT_FALSE(master_->core().model().done()) << "the other worker still trains";

  other.Step();
  servers_->Serve();

  EXPECT_TRUE(master_->core().model().done());
  EXPECT_EQ(master_->core().View().version, 4);
  EXPECT_EQ(master_->Data("training").records_not_trained, 80);
}

TEST_F(ModelJobs, FailWhenAMergedResultIsNotAnEvaluation) {
  Start(WithEvaluation(1));
  ModelWorker worker(*master_, 0, "training");
  worker.Register(1, 1);
  worker.set_merged("nan");
  for (int step = 0; step < 20 && master_->state() == JobState::kRunning; ++step) {
    worker.Step();
    servers_->Serve();
  }

  EXPECT_THAT(master_->core().View().reason, HasSubstr("the result of evaluation_merge is not"));
  EXPECT_THAT(Evaluated(), IsEmpty());
}

TEST_F(ModelJobs, FailWhenAnExportFailsWhateverMaxBadShards) {
  job::JobSpec spec = ModelSpecOf(1);
  spec.max_bad_shards = 10;
  spec.model->output = "saved_model";
  Start(spec);
  ModelWorker worker(*master_, 0, "training");
  worker.Register(1);
  while (worker.next_dataset() != "export") {
    worker.Step();
    servers_->Serve();
  }
  worker.set_error("the disk is full");
  for (int step = 0; step < 20 && master_->state() == JobState::kRunning; ++step) worker.Step();

  EXPECT_EQ(master_->core().View().reason, "the export to saved_model failed: the disk is full");
}

TEST_F(ModelJobs, EvaluateTheVersionOfTheCheckpointAndSaveNothing) {
  Start(ModelSpecOf(1, ModelJobType::kEvaluation));
  EXPECT_EQ(servers_->restored_from(), "/checkpoints/version-70");
  ModelWorker worker(*master_, 0, "evaluation");
  worker.Register(0, 2);

  EXPECT_THAT(worker.RunToTheEnd(*servers_),
              ElementsAre("evaluation", "evaluation", "evaluation_merge"));

  EXPECT_THAT(Evaluated(), ElementsAre(70));
  ExitAll(1);
  EXPECT_EQ(master_->state(), JobState::kSucceeded) << master_->core().View().reason;
  EXPECT_EQ(servers_->saves(), 0);
}

TEST_F(ModelJobs, RestoreALostServerOfAnEvaluationFromTheSameCheckpoint) {
  Start(ModelSpecOf(1, ModelJobType::kEvaluation));
  ModelWorker worker(*master_, 0, "evaluation");
  worker.Register(0, 1);
  worker.Step();

  servers_->Lose(0);

  EXPECT_EQ(servers_->restored_from(), "/checkpoints/version-70");
  worker.RunToTheEnd(*servers_);
  EXPECT_EQ(servers_->saves(), 0);
}

TEST_F(ModelJobs, PredictAndEnd) {
  Start(ModelSpecOf(1, ModelJobType::kPrediction));
  ModelWorker worker(*master_, 0, "prediction");
  DatasetSpec data = Shards(2, /*epochs=*/5);
  data.name = "prediction";
  data.task_type = TaskType::kPrediction;
  master_->Register(data);

  EXPECT_THAT(worker.RunToTheEnd(*servers_), ElementsAre("prediction", "prediction"));

  EXPECT_EQ(master_->core().View().version, 0);
  ExitAll(1);
  EXPECT_EQ(master_->state(), JobState::kSucceeded) << master_->core().View().reason;
}

TEST_F(ModelJobs, ContinueAfterACrashOfTheMasterAtEachCall) {
  job::JobSpec spec = WithEvaluation(1, 4);
  spec.model->output = "saved_model";
  Start(spec);
  ModelWorker worker(*master_, 0, "training");
  worker.Register(4, 2);
  std::vector<std::string> datasets;
  for (int step = 0; step < 100 && !worker.finished(); ++step) {
    worker.StepWithoutCommit();
    master_->CrashAndReload();
    servers_->Serve();
    for (const LeasedShard& shard : worker.Step().shards) datasets.push_back(shard.dataset);
    master_->CrashAndReload();
    servers_->Serve();
  }

  EXPECT_TRUE(worker.finished());
  EXPECT_THAT(datasets, ElementsAre("training", "training", "evaluation", "evaluation",
                                    "evaluation_merge", "training", "training", "evaluation",
                                    "evaluation", "evaluation_merge", "export"));
  EXPECT_THAT(Evaluated(), ElementsAre(4, 8));
  EXPECT_EQ(master_->core().View().evaluation, "accuracy = 0.5 (version 8)");
  ExitAll(1);
  EXPECT_EQ(master_->state(), JobState::kSucceeded) << master_->core().View().reason;
}

TEST_F(ModelJobs, GiveWorkOfALostWorkerToOthers) {
  job::JobSpec spec = WithEvaluation(2);
  spec.model->output = "saved_model";
  Start(spec);
  ModelWorker one(*master_, 0, "training");
  ModelWorker other(*master_, 1, "training");
  one.Register(1, 1);
  while (one.held().empty() || one.held()[0].dataset != "export") {
    one.Step();
    servers_->Serve();
  }
  EXPECT_EQ(other.Step().next_dataset, "export");
  const Later<ReportAndLeaseReply> held = other.Hold();
  EXPECT_FALSE(held.answered()) << "another worker exports";

  master_->Exit(master_->spec().ReplicaName(job::Role::kWorker, 0), Killed());

  ASSERT_TRUE(held.answered());
  EXPECT_THAT(held->shards, SizeIs(1));
}

TEST_F(ModelJobs, FailWithTheMessageOfAWorker) {
  Start(ModelSpecOf(2));
  master_->core().OnFail(Worker(1), " cannot import mnist.py:\nno module \x1b[31m");
  master_->core().OnFail(Worker(0), "the same again");
  master_->Commit();

  EXPECT_EQ(master_->core().View().reason,
            "elasticdl-iris-worker-1: cannot import mnist.py: no module \\x1b[31m");
  for (const std::string& name : master_->TakeStops()) master_->Exit(name, Failed());
  master_->Tick();
  EXPECT_EQ(master_->state(), JobState::kFailed);
  EXPECT_THAT(master_->TakeLaunches(), IsEmpty());
}

TEST_F(ModelJobs, FailWhenWorkersExitBeforeTheEnd) {
  Start(WithEvaluation(1));
  ModelWorker worker(*master_, 0, "training");
  worker.Register(1, 1);
  worker.Step();
  worker.Step();
  servers_->Serve();

  master_->Exit(master_->spec().ReplicaName(job::Role::kWorker, 0), Succeeded());

  EXPECT_THAT(master_->core().View().reason, HasSubstr("shards of dataset 'evaluation' were left"));
}

TEST_F(ModelJobs, RejectDatasetsThatWorkersDoNotRegister) {
  Start(WithEvaluation(1));
  const auto error_of = [&](const std::string& name, TaskType type) {
    DatasetSpec spec = Shards(1);
    spec.name = name;
    spec.task_type = type;
    return master_->core().Register(spec).status();
  };
  EXPECT_THAT(error_of("evaluation_merge", TaskType::kEvaluationMerge).message(),
              HasSubstr("is registered by the master"));
  EXPECT_THAT(error_of("export", TaskType::kExport).message(),
              HasSubstr("is registered by the master"));
  EXPECT_THAT(error_of("prediction", TaskType::kPrediction).message(),
              HasSubstr("cannot be registered"));
  EXPECT_THAT(error_of("evaluation", TaskType::kTraining).message(),
              HasSubstr("has task type 'training'"));
}

TEST_F(ModelJobs, KeepResultsUntilTheDatasetIsReset) {
  Start(WithEvaluation(1, 2));
  ModelWorker worker(*master_, 0, "training");
  worker.Register(4, 3);
  while (worker.held().empty() || worker.held()[0].dataset != "evaluation_merge") worker.Step();
  const uint32_t generation = master_->core().dispatcher().Find("evaluation")->row().generation;

  const auto page = master_->core().dispatcher().GetResults("evaluation", generation, 1);

  ASSERT_OK(page);
  ASSERT_THAT(page->rows, SizeIs(2));
  EXPECT_EQ(page->rows[0].result, "1");
  EXPECT_FALSE(page->more);
  worker.RunToTheEnd(*servers_);
  EXPECT_EQ(master_->core().dispatcher().GetResults("evaluation", generation, 0).status().code(),
            Code::kNotFound);
}

TEST_F(ModelJobs, RejectAResultThatIsTooLarge) {
  Start(WithEvaluation(1));
  ModelWorker worker(*master_, 0, "training");
  worker.Register(1, 1);
  const auto joined = master_->TryJoin({.replica = Worker(0)});
  ASSERT_OK(joined);
  const Later<ReportAndLeaseReply> answer = master_->ReportAndLease(
      {.incarnation = joined->incarnation,
       .number = 1,
       .reports = {
           {.lease = LeaseId(1), .result = std::string(Dispatcher::kLargestResult + 1, 'x')}}});

  EXPECT_EQ(answer.result().status().code(), Code::kInvalidArgument);
  EXPECT_THAT(answer.result().status().message(), HasSubstr("has 3145729 bytes"));
}

}  // namespace
}  // namespace edl::master
