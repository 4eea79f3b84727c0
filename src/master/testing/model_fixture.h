#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "master/testing/core_fixture.h"

namespace edl::master {

// A job of a model with one parameter server. Without `type` it trains.
job::JobSpec ModelSpecOf(int num_workers, job::ModelJobType type = job::ModelJobType::kTraining);

// Parameter servers that do everything that they are asked, immediately.
//
// Confined to its test.
class ObedientServers {
 public:
  explicit ObedientServers(CoreFixture& master) : master_(master) {}

  // Ticks and answers until the master asks for nothing more.
  void Serve();
  // The server's process dies, its successor runs and is restored.
  void Lose(int64_t id);

  int restores() const { return restores_; }
  int saves() const { return saves_; }
  const std::string& restored_from() const { return restored_from_; }
  // The next save is answered with this.
  void FailNextSave(Status status) { next_save_ = std::move(status); }

 private:
  CoreFixture& master_;
  uint64_t life_ = 100;
  int restores_ = 0;
  int saves_ = 0;
  std::string restored_from_;
  Status next_save_;
};

// A worker of a model that follows next_dataset: it reports what it leased with the next call.
class ModelWorker {
 public:
  ModelWorker(CoreFixture& master, int64_t id, std::string first_dataset);

  // Registers what workers of the job register.
  void Register(int64_t training_shards, int64_t evaluation_shards = 0);

  // Reports what it holds and requests the next shard. Returns the answer, which is Wait if the
  // call was held.
  ReportAndLeaseReply Step();
  // Makes the call of the next Step without a commit, as before a crash of the master.
  void StepWithoutCommit();
  // Requests a shard and leaves the call held; Result() has its answer.
  Later<ReportAndLeaseReply> Hold();
  // Steps until Finished, at most so often. Returns the datasets of the shards that it got.
  std::vector<std::string> RunToTheEnd(ObedientServers& servers, int most_steps = 200);

  bool finished() const { return finished_; }
  const std::vector<LeasedShard>& held() const { return held_; }
  const std::string& next_dataset() const { return next_dataset_; }
  void set_merged(std::string result) { merged_ = std::move(result); }
  // What it reports for the shards that it holds; empty: they are done.
  void set_error(std::string error) { error_ = std::move(error); }

 private:
  ReportAndLeaseRequest NextRequest(milliseconds wait);
  void Take(const ReportAndLeaseReply& answer);

  CoreFixture& master_;
  Incarnation incarnation_;
  uint64_t number_ = 0;
  std::string next_dataset_;
  std::vector<LeasedShard> held_;
  std::string merged_ = R"({"text": "{'accuracy': 0.5}", "metrics": {"accuracy": 0.5}})";
  std::string error_;
  bool finished_ = false;
};

}  // namespace edl::master
