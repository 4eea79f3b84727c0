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
#include "cli/job_store.h"
#include "cli/platform.h"
#include "job/job_view.h"

namespace edl::cli {

// What the next job that is started will do.
struct FakeJob {
  job::JobView end_view;       // what its master writes down at its end
  JobEnd end;                  // what Wait() says
  std::string master_address;  // where a fake master answers meanwhile; empty: nobody does
  // Called with the folder when it is started; may set master_address.
  std::function<void(FakeJob&, const JobFolder&)> on_start;
  int ends_after_shutdowns = 0;  // 0: at once; n: with the n-th Shutdown()
  std::string master_log;        // what its master's log holds
  Status start_failure;          // instead of starting
  std::vector<int> signals;      // that arrive while it runs
};

// A machine of its own for a test: a home that is removed at the end, and jobs that only seem to
// run. Confined to the test.
class FakePlatform {
 public:
  FakePlatform();
  ~FakePlatform();

  Platform& platform() { return platform_; }
  // Each reading of the clock takes so long from now on.
  void set_clock_step(Duration step) { clock_.step = step; }
  JobStore store() const { return JobStore(home_); }
  const std::filesystem::path& home() const { return home_; }

  // Runs "elasticdl <arguments>".
  int Run(const std::vector<std::string>& arguments);
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }
  void ClearOutput();
  // REQUIRES: a job is followed.
  void SendSignal(int signal);
  // Ends the job that was started last.
  void EndJob();
  // Ends a job that AddRunningJob made.
  void EndJobNamed(const std::string& job);

  // A folder of a job that ended in `view`'s state, or that runs with a master at `address`.
  void AddJob(const job::JobView& view);
  void AddRunningJob(const job::JobView& view, const std::string& address,
                     const std::string& token);
  void AddLog(const std::string& job, const std::string& name, const std::string& text);

  FakeJob next;                       // the next job to be started
  std::vector<StartOptions> started;  // jobs that were started
  int shutdowns = 0;                  // calls of Shutdown() and of LocalJobs::shutdown
  std::map<std::string, std::string> variables;
  // What programs do, by name. There are no others.
  std::map<std::string, std::function<Result<ProgramEnd>(const Program&)>> programs;
  std::map<std::string, Result<job::JobView>> ledgers;  // what they know, by job
  std::vector<std::vector<std::string>> ran;            // command lines
  std::function<void(const std::string& name)> on_log = [](const std::string&) {};  // was read
  LocalJobs::Agent agent;                                                           // of every job
  std::string context;                          // the kubeconfig's
  std::optional<backend::FakeCluster> cluster;  // none: none is configured

 private:
  class Job;
  // Real time, and `step` more with each reading.
  class SteppedClock final : public Clock {
   public:
    Time Now() const override { return system_.Now() + (passed_ += step); }
    WallTime WallNow() const override { return system_.WallNow(); }
    Duration step = Duration::zero();

   private:
    SystemClock system_;
    mutable Duration passed_ = Duration::zero();
  };

  FileDescriptor signals_;  // where signals are written to
  Job* job_ = nullptr;      // started last
  std::filesystem::path home_;
  std::ostringstream out_;
  std::ostringstream err_;
  SteppedClock clock_;
  std::map<std::string, bool> running_;  // by folder
  Platform platform_;
};

}  // namespace edl::cli
