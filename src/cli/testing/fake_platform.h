#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "backend/testing/fake_cluster.h"
#include "base/clock.h"
#include "base/testing/temporary_folder.h"
#include "cli/job_store.h"
#include "cli/platform.h"
#include "job/job_view.h"

namespace edl::cli {

// How the next job that is started behaves.
struct FakeJob {
  job::JobView end_view;       // the last view that its master writes
  JobEnd end;                  // what Wait() returns
  std::string master_address;  // of a fake master; empty: the master does not answer
  // Called when the job is started; may set master_address.
  std::function<void(FakeJob&, const JobFolder&)> on_start;
  int ends_after_shutdowns = 0;  // 0: the job ends at once; n: with the n-th Shutdown()
  std::string master_log;        // the content of the master's log
  Status start_failure;          // unless Ok, the start fails with it
  std::vector<int> signals;      // signals that arrive while the job runs
};

// A Platform for tests: a temporary home folder, and fake jobs, programs and clusters. A failure of
// the fake itself fails the test. Confined to the test.
class FakePlatform {
 public:
  FakePlatform();

  Platform& platform() { return platform_; }
  // From now on each Now() advances the clock by `step`.
  void set_clock_step(Duration step) { clock_.step = step; }
  JobStore store() const { return JobStore(home_); }
  const std::filesystem::path& home() const { return home_; }

  // Runs "elasticdl <arguments>".
  int Run(const std::vector<std::string>& arguments);
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }
  void ClearOutput();
  // Delivers a signal to the verb. REQUIRES: the verb has called catch_signals.
  void SendSignal(int signal);
  // Ends the job that was started last. REQUIRES: it runs.
  void EndJob();
  // Ends a job that AddRunningJob made.
  void EndJobNamed(const std::string& job);

  // Adds the folder of a job that ended with `view`, or of one that runs with a master at
  // `address`.
  void AddJob(const job::JobView& view);
  void AddRunningJob(const job::JobView& view, const std::string& address,
                     const std::string& token);
  void AddLog(const std::string& job, const std::string& name, const std::string& text);

  FakeJob next;                       // the behaviour of the next job
  std::vector<StartOptions> started;  // the jobs that were started
  int shutdowns = 0;                  // calls of Shutdown() and of LocalJobs::shutdown
  std::map<std::string, std::string> variables;
  std::string input;  // what standard input has
  // The programs that exist, by name.
  std::map<std::string, std::function<Result<ProgramEnd>(const Program&)>> programs;
  std::map<std::string, Result<job::JobView>> ledgers;  // the views in ledgers, by job
  std::map<std::string, telemetry::Curves> curves;      // in ledgers, by job
  std::vector<std::vector<std::string>> ran;            // command lines of programs that were run
  std::function<void(const std::string& name)> on_log = [](const std::string&) {
  };                                            // called when a log is read
  LocalJobs::Agent agent;                       // of every job
  std::string context;                          // the kubeconfig's current context
  std::optional<backend::FakeCluster> cluster;  // nullopt: no cluster is configured

 private:
  class Job;
  // Real time plus `step` for each call of Now().
  class SteppedClock final : public Clock {
   public:
    Time Now() const override { return system_.Now() + (passed_ += step); }
    WallTime WallNow() const override { return system_.WallNow(); }
    Duration step = Duration::zero();

   private:
    SystemClock system_;
    mutable Duration passed_ = Duration::zero();
  };

  FileDescriptor signals_;  // the writing end of the pipe for signals
  Job* job_ = nullptr;      // the job that was started last
  const TemporaryFolder temporary_;
  const std::filesystem::path home_ = temporary_.path();
  std::ostringstream out_;
  std::ostringstream err_;
  SteppedClock clock_;
  std::map<std::string, bool> running_;  // by folder
  Platform platform_;
};

}  // namespace edl::cli
