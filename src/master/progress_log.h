#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace edl::master {

// Reads the progress of a job from the output of TensorFlow's chief and evaluator: steps, loss,
// saved and evaluated checkpoints.
//
// Confined: call it on the master's loop.
class ProgressLog {
 public:
  // Takes the next piece of output of a replica; lines may be split anywhere. `source` names the
  // replica. True: some value of this object changed.
  bool Feed(const std::string& source, std::string_view text);

  // What one line says.
  struct Logged {
    bool evaluation = false;               // of a checkpoint; otherwise training
    int64_t step = -1;                     // -1: the line has none
    std::map<std::string, double> values;  // training: "loss", "steps_per_s"
  };
  // What the lines since the last call say, oldest first.
  std::vector<Logged> TakeLogged() { return std::exchange(logged_, {}); }

  // Call it when `source` has ended.
  void Forget(const std::string& source) { rest_.erase(source); }

  // The steps of the last saved and of the last evaluated checkpoint. -1: none yet.
  int64_t checkpoint_step() const { return checkpoint_step_; }
  int64_t evaluated_step() const { return evaluated_step_; }
  // "accuracy = 0.96, loss = 0.1 (global step 470)"; empty: none yet.
  const std::string& evaluation() const { return evaluation_; }
  const std::map<std::string, double>& metrics() const { return metrics_; }
  // How often the evaluator has announced that it waits before an evaluation, and for how many
  // seconds the last time: start_delay_secs or throttle_secs of EvalSpec.
  int64_t evaluator_waits() const { return evaluator_waits_; }
  double evaluator_wait_secs() const { return evaluator_wait_secs_; }
  void SetMetric(const std::string& name, double value) { metrics_[name] = value; }

  // An Estimator has logged that its training is over.
  bool training_ended() const { return training_ended_; }

  // An evaluation that was not read from a log.
  void SetEvaluation(int64_t step, std::string text) {
    evaluated_step_ = step;
    evaluation_ = std::move(text);
  }
  // Sets what an earlier process of the master had read.
  void Restore(int64_t checkpoint_step, int64_t evaluated_step, std::string evaluation);

 private:
  bool FeedLine(std::string_view line);
  bool FeedTraining(std::string_view line);

  std::map<std::string, std::string> rest_;  // unfinished lines
  std::map<std::string, double> metrics_;
  std::vector<Logged> logged_;
  int64_t checkpoint_step_ = -1;
  int64_t evaluated_step_ = -1;
  std::string evaluation_;
  int64_t evaluator_waits_ = 0;
  double evaluator_wait_secs_ = 0;
  bool training_ended_ = false;
};

}  // namespace edl::master
