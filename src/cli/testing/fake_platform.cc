#include "cli/testing/fake_platform.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/testing/status_matchers.h"
#include "cli/verbs.h"

namespace edl::cli {

namespace fs = std::filesystem;

class FakePlatform::Job final : public RunningJob {
 public:
  Job(FakePlatform& platform, FakeJob job, JobFolder folder)
      : platform_(platform),
        job_(std::move(job)),
        folder_(std::move(folder)),
        end_(eventfd(0, EFD_CLOEXEC)) {
    platform_.running_[folder_.path().string()] = true;
    platform_.job_ = this;
    if (job_.on_start) job_.on_start(job_, folder_);
    if (job_.ends_after_shutdowns == 0) End();
  }
  ~Job() override {
    platform_.job_ = nullptr;
    platform_.running_[folder_.path().string()] = false;
  }

  int end_fd() const override { return end_.get(); }
  const std::string& master_address() const override { return job_.master_address; }

  Status Shutdown() override {
    ++platform_.shutdowns;
    if (--job_.ends_after_shutdowns == 0) End();
    return Ok();
  }

  Result<JobEnd> Wait() override { return job_.end; }

  void End() {
    if (!job_.end_view.name.empty()) {
      EXPECT_OK(folder_.WriteView(job_.end_view));
    }
    platform_.AddLog(folder_.name(), "master", job_.master_log);
    platform_.running_[folder_.path().string()] = false;
    EXPECT_EQ(eventfd_write(end_.get(), 1), 0) << "signalling the end of the job";
  }

 private:
  FakePlatform& platform_;
  FakeJob job_;
  const JobFolder folder_;
  const FileDescriptor end_;
};

FakePlatform::FakePlatform() : platform_{.out = out_, .err = err_, .clock = clock_, .home = home_} {
  platform_.variable = [this](const char* name) -> const char* {
    const auto value = variables.find(name);
    return value == variables.end() ? nullptr : value->second.c_str();
  };
  platform_.cluster = [this](const std::string&,
                             ClusterConfig) -> Result<std::unique_ptr<backend::ClusterJobs>> {
    if (!cluster.has_value()) return NotFound("no cluster is configured");
    return cluster->Connect();
  };
  platform_.cluster_context = [this] { return context; };
  platform_.folder = home_;
  platform_.read_input = [this]() -> Result<std::string> { return input; };
  platform_.run = [this](const Program& program) -> Result<ProgramEnd> {
    const std::string& name = program.command.front();
    ran.push_back(program.command);
    const auto found = programs.find(name);
    if (found == programs.end()) return NotFound("running {}: no such file or directory", name);
    return found->second(program);
  };
  platform_.catch_signals = [this]() -> Result<FileDescriptor> {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return Errno("making a pipe for signals");
    signals_ = FileDescriptor(ends[1]);
    for (const int signal : next.signals) SendSignal(signal);
    return FileDescriptor(ends[0]);
  };
  platform_.local.start =
      [this](const StartOptions& options) -> Result<std::unique_ptr<RunningJob>> {
    if (!next.start_failure.ok()) return next.start_failure;
    started.push_back(options);
    return std::unique_ptr<RunningJob>(
        std::make_unique<Job>(*this, next, JobFolder(options.job_dir)));
  };
  platform_.local.is_running = [this](const fs::path& folder) -> Result<bool> {
    return running_[folder.string()];
  };
  platform_.local.shutdown = [this](const fs::path& folder) -> Status {
    ++shutdowns;
    running_[folder.string()] = false;
    return Ok();
  };
  platform_.local.find_agent = [this](const fs::path&) -> Result<LocalJobs::Agent> {
    return agent;
  };
  platform_.local.read_log = [this](const fs::path& dir, const std::string& name, int64_t offset,
                                    int64_t) -> Result<backend::LogPiece> {
    EDL_ASSIGN_OR_RETURN(const std::string text, ReadFile(dir / (name + ".log")));
    on_log(name);
    const auto size = static_cast<int64_t>(text.size());
    if (offset < 0) offset = std::max<int64_t>(size + offset, 0);
    return backend::LogPiece{text.substr(static_cast<size_t>(offset)), size};
  };
  platform_.local.read_ledger = [](const fs::path& path) -> Result<std::string> {
    return "ledger at " + path.filename().string();
  };
  platform_.local.read_ledger_view = [this](const fs::path& path) -> Result<job::JobView> {
    const auto found = ledgers.find(path.parent_path().filename().string());
    if (found == ledgers.end()) return NotFound("there is no ledger at {}", path.string());
    return found->second;
  };
  platform_.local.read_ledger_curves =
      [this](const fs::path& path, const telemetry::Query& query) -> Result<telemetry::Curves> {
    const auto found = curves.find(path.parent_path().filename().string());
    if (found == curves.end()) return NotFound("there is no ledger at {}", path.string());
    telemetry::Curves read = found->second;
    std::erase_if(read.series, [&](const telemetry::Curve& curve) {
      return !query.series.empty() &&
             std::ranges::find(query.series, curve.name) == query.series.end();
    });
    return read;
  };
}

int FakePlatform::Run(const std::vector<std::string>& arguments) {
  ClearOutput();
  return Main(platform_, arguments);
}

void FakePlatform::ClearOutput() {
  out_.str("");
  err_.str("");
}

void FakePlatform::SendSignal(int signal) {
  signalfd_siginfo info{};
  info.ssi_signo = static_cast<uint32_t>(signal);
  EXPECT_EQ(write(signals_.get(), &info, sizeof info), ssize_t{sizeof info})
      << "sending signal " << signal;
}

void FakePlatform::EndJob() {
  ASSERT_NE(job_, nullptr) << "no job runs";
  job_->End();
}

void FakePlatform::EndJobNamed(const std::string& job) {
  ASSERT_OK_AND_ASSIGN(const JobFolder folder, store().Find(job));
  running_[folder.path().string()] = false;
}

void FakePlatform::AddJob(const job::JobView& view) {
  EXPECT_OK(store().Create(
      view.name, "{\"job_name\": \"" + view.name + "\", \"job_command\": \"true\"}", view));
}

void FakePlatform::AddRunningJob(const job::JobView& view, const std::string& address,
                                 const std::string& token) {
  AddJob(view);
  ASSERT_OK_AND_ASSIGN(const JobFolder folder, store().Find(view.name));
  EXPECT_OK(WriteFileAtomically(folder.path() / "master.addr", address));
  EXPECT_OK(WriteFileAtomically(folder.path() / "token", token));
  running_[folder.path().string()] = true;
}

void FakePlatform::AddLog(const std::string& job, const std::string& name,
                          const std::string& text) {
  ASSERT_OK_AND_ASSIGN(const JobFolder folder, store().Find(job));
  EXPECT_OK(WriteFileAtomically(folder.logs() / (name + ".log"), text));
}

}  // namespace edl::cli
