#include "master/testing/model_fixture.h"

#include <utility>

#include "base/testing/status_matchers.h"

namespace edl::master {

job::JobSpec ModelSpecOf(int num_workers, job::ModelJobType type) {
  job::JobSpec spec = WorkersOnly(num_workers);
  spec.job_command.clear();
  spec.own_ps = true;
  spec.num_ps = 1;
  spec.compat_api = false;
  spec.recovery_checkpoint_secs = 30;
  spec.ps_silence_secs = 0;  // servers answer when the test says so
  spec.model = job::ModelSpec{.type = type, .python = "python3", .model_def = "m.f"};
  switch (type) {
    case job::ModelJobType::kTraining:
      spec.model->training_data = "train";
      break;
    case job::ModelJobType::kEvaluation:
      spec.model->validation_data = "test";
      spec.model->init_version = 70;
      spec.checkpoint_dir_for_init = "/checkpoints/version-70";
      break;
    case job::ModelJobType::kPrediction:
      spec.model->prediction_data = "new";
      spec.checkpoint_dir_for_init = "/checkpoints/version-70";
      break;
  }
  return spec;
}

void ObedientServers::Serve() {
  for (int round = 0; round < 100; ++round) {
    master_.Tick();
    const std::vector<ServerCommand> commands = master_.core().TakeServerCommands();
    if (commands.empty()) return;
    for (const ServerCommand& command : commands) {
      if (const auto* probe = std::get_if<ProbeServer>(&command)) {
        master_.core().OnProbed(probe->number, ProbeReply{PsIncarnation(life_), 1});
      } else if (const auto* restore = std::get_if<RestoreServers>(&command)) {
        ++restores_;
        restored_from_ = restore->checkpoint;
        master_.core().OnRestored(restore->number, Ok());
      } else if (const auto* save = std::get_if<SaveAll>(&command)) {
        ++saves_;
        master_.core().OnSaved(save->number, std::exchange(next_save_, Ok()));
      }
    }
    master_.Commit();
  }
  ADD_FAILURE() << "the master sends commands to parameter servers without end";
}

void ObedientServers::Lose(int64_t id) {
  master_.Exit(master_.spec().ReplicaName(job::Role::kPs, id), Killed());
  ++life_;
  master_.LetPass(milliseconds(100));
  master_.Running(master_.spec().ReplicaName(job::Role::kPs, id + 1));
  Serve();
}

ModelWorker::ModelWorker(CoreFixture& master, int64_t id, std::string first_dataset)
    : master_(master), next_dataset_(std::move(first_dataset)) {
  const auto joined = master_.TryJoin({.replica = Worker(id), .process = "host:1"});
  EXPECT_OK(joined);
  if (joined.ok()) incarnation_ = joined->incarnation;
}

void ModelWorker::Register(int64_t training_shards, int64_t evaluation_shards) {
  if (training_shards > 0) {
    DatasetSpec training = Shards(training_shards);
    training.name = "training";
    master_.Register(training);
  }
  if (evaluation_shards > 0) {
    DatasetSpec evaluation = Shards(evaluation_shards);
    evaluation.name = "evaluation";
    evaluation.task_type = TaskType::kEvaluation;
    master_.Register(evaluation);
  }
}

ReportAndLeaseRequest ModelWorker::NextRequest(milliseconds wait) {
  ReportAndLeaseRequest request{.incarnation = incarnation_,
                                .number = number_ + 1,
                                .received = number_,
                                .dataset = next_dataset_,
                                .lease_at_most = 1,
                                .wait = wait};
  for (const LeasedShard& shard : held_) {
    ShardReport report{.lease = shard.lease};
    if (!error_.empty()) {
      report.outcome = ShardOutcome::kFailed;
      report.error = error_;
    } else if (shard.task_type == TaskType::kEvaluation) {
      report.result = std::to_string(shard.key.ordinal);
    } else if (shard.task_type == TaskType::kEvaluationMerge) {
      report.result = merged_;
    }
    request.reports.push_back(std::move(report));
  }
  return request;
}

void ModelWorker::Take(const ReportAndLeaseReply& answer) {
  held_ = answer.shards;
  finished_ = answer.answer == LeaseAnswer::kFinished;
  next_dataset_ = answer.next_dataset;
}

ReportAndLeaseReply ModelWorker::Step() {
  const Later<ReportAndLeaseReply> answer = master_.ReportAndLease(NextRequest(milliseconds(0)));
  if (!answer.answered()) master_.LetPass(milliseconds(20));
  ++number_;
  Take(*answer);
  return *answer;
}

void ModelWorker::StepWithoutCommit() {
  ReportAndLeaseRequest request = NextRequest(milliseconds(0));
  request.call = master_.NextCall();
  master_.core().master_api().ReportAndLease(request, Later<ReportAndLeaseReply>().reply());
}

Later<ReportAndLeaseReply> ModelWorker::Hold() {
  Later<ReportAndLeaseReply> answer = master_.ReportAndLease(NextRequest(std::chrono::hours(1)));
  ++number_;
  held_.clear();
  return answer;
}

std::vector<std::string> ModelWorker::RunToTheEnd(ObedientServers& servers, int most_steps) {
  std::vector<std::string> datasets;
  for (int step = 0; step < most_steps && !finished_; ++step) {
    for (const LeasedShard& shard : Step().shards) datasets.push_back(shard.dataset);
    servers.Serve();
  }
  EXPECT_TRUE(finished_) << "no end after " << most_steps << " calls; the last one was for "
                         << next_dataset_;
  return datasets;
}

}  // namespace edl::master
