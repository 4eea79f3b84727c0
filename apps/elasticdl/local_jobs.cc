#include "apps/elasticdl/local_jobs.h"

#include <memory>
#include <utility>

#include "backend/local/agent.h"
#include "backend/local/log_file.h"
#include "master/ledger/ledger_report.h"

namespace edl::apps {
namespace {

namespace fs = std::filesystem;

class AgentsJob final : public cli::RunningJob {
 public:
  explicit AgentsJob(backend::local::AgentHandle agent) : agent_(std::move(agent)) {}

  int end_fd() const override { return agent_.pidfd(); }
  const std::string& master_address() const override { return agent_.master_address(); }
  Status Shutdown() override { return agent_.Shutdown(); }
  Result<cli::JobEnd> Wait() override {
    EDL_ASSIGN_OR_RETURN(backend::local::JobEnd end, agent_.Wait());
    return cli::JobEnd{end.exit_code, std::move(end.reason)};
  }

 private:
  backend::local::AgentHandle agent_;
};

Result<std::unique_ptr<cli::RunningJob>> Start(const fs::path& program,
                                               const cli::StartOptions& options) {
  backend::local::AgentOptions agent;
  agent.job_dir = options.job_dir;
  agent.master_command = {program.string(), "master", "-f",
                          (options.job_dir / "spec.json").string(),
                          "--job_dir=" + options.job_dir.string()};
  agent.volumes = options.volumes;
  agent.detach = options.detach;
  agent.master_port = options.master_port;
  EDL_ASSIGN_OR_RETURN(backend::local::AgentHandle handle, backend::local::StartAgent(agent));
  return std::unique_ptr<cli::RunningJob>(std::make_unique<AgentsJob>(std::move(handle)));
}

}  // namespace

cli::LocalJobs MakeLocalJobs(fs::path program) {
  cli::LocalJobs jobs;
  jobs.start = [program = std::move(program)](const cli::StartOptions& options) {
    return Start(program, options);
  };
  jobs.is_running = backend::local::IsAgentRunning;
  jobs.shutdown = backend::local::ShutdownAgent;
  jobs.find_agent = [](const fs::path& job_dir) -> Result<cli::LocalJobs::Agent> {
    EDL_ASSIGN_OR_RETURN(const backend::local::AgentProcess agent,
                         backend::local::FindAgent(job_dir));
    return cli::LocalJobs::Agent{.process_id = agent.process_id, .stopped = agent.stopped};
  };
  jobs.read_log = backend::local::ReadLog;
  jobs.read_ledger = [](const fs::path& path) { return master::ReadLedgerJson(path.string()); };
  jobs.read_ledger_view = [](const fs::path& path) {
    return master::ReadLedgerView(path.string());
  };
  jobs.read_ledger_curves = [](const fs::path& path, const telemetry::Query& query) {
    return master::ReadLedgerCurves(path.string(), query);
  };
  return jobs;
}

}  // namespace edl::apps
