#include "backend/local/supervisor.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/exit_cause.h"
#include "backend/local/log_file.h"
#include "backend/local/process_tree.h"
#include "base/log.h"

namespace edl::backend::local {
namespace {

using Kind = job::ReplicaEvent::Kind;

constexpr int kFailedCode = 1;
constexpr int kStoppedCode = 3;
constexpr std::chrono::seconds kStartTimeout{30};
constexpr std::chrono::seconds kEndTimeout{10};  // after the grace period

std::optional<CgroupLocation> OwnCgroup() {
  const Result<std::string> cgroup = ReadFile("/proc/self/cgroup");
  const Result<std::string> mounts = ReadFile("/proc/self/mountinfo");
  if (!cgroup.ok() || !mounts.ok()) return std::nullopt;
  return FindMemoryCgroup(*cgroup, *mounts);
}

bool IsReplicaName(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  // "master" and "agent" are names of other logs.
  return plain && !name.empty() && name.size() <= 200 && name[0] != '.' && name != "master" &&
         name != "agent";
}

bool HasNul(const std::string& text) { return text.find('\0') != std::string::npos; }

Status CheckSpec(const job::ReplicaSpec& spec) {
  if (!IsReplicaName(spec.name)) {
    return InvalidArgument(
        "invalid replica name '{}': use at most 200 letters, digits, '-', '_' and '.'", spec.name);
  }
  if (spec.command.empty()) return InvalidArgument("replica {} has no command", spec.name);
  if (std::any_of(spec.command.begin(), spec.command.end(), HasNul)) {
    return InvalidArgument("the command of replica {} contains a zero byte", spec.name);
  }
  for (const auto& [name, value] : spec.env) {
    if (name.empty() || name.find('=') != std::string::npos || HasNul(name) || HasNul(value)) {
      return InvalidArgument("replica {} has an invalid environment variable '{}'", spec.name,
                             name);
    }
  }
  return Ok();
}

}  // namespace

Supervisor::Supervisor(EventLoop& loop, const Clock& clock, AgentOptions options,
                       Environment environment, PortPool ports)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      environment_(std::move(environment)),
      ports_(std::move(ports)),
      cgroups_(OwnCgroup(), environment_.agent_name) {}

Result<std::string> Supervisor::ReserveMasterAddress() {
  if (const int fixed = options_.master_port; fixed != 0) {
    EDL_RETURN_IF_ERROR(
        ports_.ReserveAndBindPort(fixed).Within(fmt::format("--master_port={}", fixed)));
    master_port_ = fixed;
  } else {
    const int before = master_port_;
    EDL_ASSIGN_OR_RETURN(master_port_, ports_.ReserveAndBind());
    ports_.Release(before);  // last, so that it is not chosen again
  }
  std::string address = fmt::format("127.0.0.1:{}", master_port_);
  EDL_RETURN_IF_ERROR(WriteFileAtomically(options_.job_dir / "master.addr", address));
  return address;
}

ProcessSpec Supervisor::MakeProcessSpec(std::string log_name,
                                        std::vector<std::string> command) const {
  return {.log_name = std::move(log_name),
          .command = std::move(command),
          .log_dir = options_.job_dir / "logs",
          .log_limit_bytes = options_.log_limit_bytes,
          .outer_proc = environment_.outer_proc,
          .open_files = environment_.open_files};
}

Status Supervisor::Launch(const job::ReplicaSpec& spec) {
  if (replicas_.contains(spec.name)) return Ok();
  EDL_RETURN_IF_ERROR(CheckSpec(spec));
  if (phase_ != Phase::kRunning) {
    return FailedPrecondition("cannot launch replica {}: the job is ending", spec.name);
  }
  Replica replica;
  replica.last.name = spec.name;
  replica.command = spec.command.front();
  EDL_RETURN_IF_ERROR(Run(replica, spec));
  Replica& kept = replicas_.emplace(spec.name, std::move(replica)).first->second;
  Notify(kept, {.kind = Kind::kPending, .reason = "starting"});
  return Ok();
}

Status Supervisor::Run(Replica& replica, const job::ReplicaSpec& spec) {
  ProcessSpec process_spec = MakeProcessSpec(spec.name, spec.command);
  process_spec.env = spec.env;
  // Created here, so that the replica has a log from its launch on.
  Result<LogFile> log = LogFile::Open(process_spec.log_dir, spec.name, options_.log_limit_bytes);
  if (!log.ok()) return log.status();
  process_spec.cgroup = MakeCgroup(spec);
  EDL_ASSIGN_OR_RETURN(ReplicaProcess process, ReplicaProcess::Start(process_spec));
  EDL_RETURN_IF_ERROR(
      loop_.Add(process.fd(), POLLIN, [this, name = spec.name] { OnReplicaReport(name); }));
  replica.cgroup = process_spec.cgroup;
  replica.process = std::move(process);
  return Ok();
}

std::filesystem::path Supervisor::MakeCgroup(const job::ReplicaSpec& spec) {
  if (spec.memory_limit_bytes <= 0) return {};
  Result<std::filesystem::path> cgroup = cgroups_.Make(spec.name, spec.memory_limit_bytes);
  if (cgroup.ok()) return *std::move(cgroup);
  WarnOfLimits(cgroup.status().message());
  return {};
}

void Supervisor::WarnOfLimits(const std::string& why) {
  if (warned_of_limits_) return;
  warned_of_limits_ = true;
  LOG_WARNING("memory limits of replicas are not applied on this machine: {}", why);
}

void Supervisor::OnReplicaReport(const std::string& name) {
  Replica& replica = replicas_.at(name);
  while (replica.process.has_value()) {
    const Result<ShimReport> report = replica.process->Receive();
    if (report.status().code() == Code::kUnavailable) return;
    if (!report.ok()) {
      KillOrphansOf(replica.process->shim());
      job::ExitCause cause = CauseOfSignal(SIGKILL);
      cause.message = "its shim was killed, and with it the replica";
      OnReplicaEnd(replica, std::move(cause));
      return;
    }
    switch (report->kind) {
      case ShimReport::Kind::kStarted:
        if (!replica.cgroup.empty() && report->in_cgroup == 0) {
          WarnOfLimits("processes may not enter " + replica.cgroup.string());
        }
        LOG_INFO("{} runs as process {}", name, report->process_id);
        Notify(replica, {.kind = Kind::kRunning, .process_id = report->process_id});
        break;
      case ShimReport::Kind::kNotStarted:
        OnReplicaEnd(replica, {.kind = job::ExitCause::Kind::kNotLaunched,
                               .message = fmt::format("cannot start '{}': {}", replica.command,
                                                      std::strerror(report->error))});
        break;
      case ShimReport::Kind::kExited:
        OnReplicaEnd(replica, CauseOf(replica, report->wait_status));
        break;
    }
  }
}

job::ExitCause Supervisor::CauseOf(const Replica& replica, int wait_status) const {
  job::ExitCause cause = WIFSIGNALED(wait_status) ? CauseOfSignal(WTERMSIG(wait_status))
                                                  : CauseOfExit(WEXITSTATUS(wait_status));
  const bool succeeded = cause.kind == job::ExitCause::Kind::kSucceeded;
  if (!succeeded && !replica.cgroup.empty() && cgroups_.OutOfMemoryKills(replica.cgroup) > 0) {
    cause.kind = job::ExitCause::Kind::kOutOfMemory;
    cause.message = "out of memory: the replica reached its memory limit (" + cause.message + ")";
  }
  return cause;
}

void Supervisor::OnReplicaEnd(Replica& replica, job::ExitCause cause) {
  LOG_INFO("{} ended: {}", replica.last.name, cause.message);
  loop_.Remove(replica.process->fd());
  replica.process.reset();
  if (!replica.cgroup.empty()) cgroups_.Remove(replica.cgroup);
  Notify(replica, {.kind = Kind::kExited, .cause = std::move(cause)});
  FinishIfAllEnded();
}

void Supervisor::Notify(Replica& replica, job::ReplicaEvent event) {
  event.name = replica.last.name;
  replica.last = std::move(event);
  if (on_event_) on_event_(replica.last);
}

Status Supervisor::Stop(const std::string& name, std::chrono::milliseconds grace) {
  const auto found = replicas_.find(name);
  if (found != replicas_.end() && found->second.process.has_value()) {
    found->second.process->Stop(grace);
  }
  return Ok();
}

Status Supervisor::Acknowledge(const std::string& name) {
  const auto found = replicas_.find(name);
  if (found != replicas_.end() && found->second.last.kind == Kind::kExited) {
    found->second.acknowledged = true;
  }
  return Ok();
}

Result<std::string> Supervisor::AddressOf(job::Role role, int index) {
  auto slot = slot_ports_.find({role, index});
  if (slot == slot_ports_.end()) {
    EDL_ASSIGN_OR_RETURN(const int port, ports_.Reserve());
    slot = slot_ports_.emplace(std::pair(role, index), port).first;
  }
  return fmt::format("127.0.0.1:{}", slot->second);
}

std::vector<job::ReplicaEvent> Supervisor::Replicas() const {
  std::vector<job::ReplicaEvent> events;
  for (const auto& [name, replica] : replicas_) {
    if (!replica.acknowledged) events.push_back(replica.last);
  }
  return events;
}

void Supervisor::SetOnEvent(std::function<void(const job::ReplicaEvent&)> on_event) {
  on_event_ = std::move(on_event);
}

Result<ReplicaProcess> Supervisor::RunMaster() {
  std::vector<std::string> command = options_.master_command;
  command.push_back(fmt::format("--port={}", master_port_));
  master_started_ = clock_.Now();
  ProcessSpec spec = MakeProcessSpec("master", std::move(command));
  spec.process_id_variable = kHostProcessIdVariable;
  return ReplicaProcess::Start(spec);
}

Status Supervisor::WatchMaster(ReplicaProcess process) {
  EDL_RETURN_IF_ERROR(loop_.Add(process.fd(), POLLIN, [this] { OnMasterReport(); }));
  master_ = std::move(process);
  return Ok();
}

Status Supervisor::StartMaster() {
  if (options_.master_command.empty()) return InvalidArgument("the master has no command");
  EDL_ASSIGN_OR_RETURN(ReplicaProcess process, RunMaster());
  const Result<ShimReport> report = process.Await(kStartTimeout);
  if (!report.ok()) return report.status();
  if (report->kind == ShimReport::Kind::kNotStarted) {
    return StatusFromErrno(report->error,
                           fmt::format("starting the master, '{}'", options_.master_command[0]));
  }
  LOG_INFO("the master runs as process {}", report->process_id);
  return WatchMaster(std::move(process));
}

void Supervisor::RestartMaster() {
  if (phase_ != Phase::kRunning) return;
  Result<ReplicaProcess> process = RunMaster();
  const Status status =
      process.ok() ? WatchMaster(*std::move(process)) : std::move(process).status();
  if (!status.ok()) EndReplicas(kFailedCode, "cannot start the master: " + status.message());
}

void Supervisor::OnMasterReport() {
  while (master_.has_value()) {
    const Result<ShimReport> report = master_->Receive();
    if (report.status().code() == Code::kUnavailable) return;
    if (report.ok() && report->kind == ShimReport::Kind::kStarted) {
      LOG_INFO("the master runs as process {}", report->process_id);
      continue;
    }
    const pid_t shim = master_->shim();
    loop_.Remove(master_->fd());
    master_.reset();
    if (!report.ok()) {
      KillOrphansOf(shim);
      OnMasterEnd(SIGKILL);
    } else if (report->kind == ShimReport::Kind::kNotStarted) {
      EndReplicas(kFailedCode,
                  fmt::format("cannot start the master: {}", std::strerror(report->error)));
    } else {
      OnMasterEnd(report->wait_status);
    }
  }
}

void Supervisor::OnMasterEnd(int wait_status) {
  const Duration lived = clock_.Now() - master_started_;
  if (lived >= RestartPolicy::kStableAfter) port_tries_ = 0;
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kPortTakenCode &&
      phase_ == Phase::kRunning) {
    return OnPortInUse();
  }
  if (WIFEXITED(wait_status)) {
    LOG_INFO("the master ended with exit code {}", WEXITSTATUS(wait_status));
    return EndReplicas(WEXITSTATUS(wait_status), ending_.reason);
  }
  const std::string signal = NameOfSignal(WTERMSIG(wait_status));
  if (phase_ != Phase::kRunning) return EndReplicas(kStoppedCode, ending_.reason);
  const std::optional<Duration> delay = restarts_.OnDeath(lived);
  if (!delay.has_value()) {
    return EndReplicas(
        kFailedCode,
        fmt::format("the master died {} times in a row within {} s of its start, the "
                    "last time by {}; see logs/master.log",
                    RestartPolicy::kMaxEarlyDeaths, RestartPolicy::kStableAfter.count(), signal));
  }
  LOG_WARNING("the master was killed by {}; restarting it", signal);
  if (*delay == Duration::zero()) return RestartMaster();
  loop_.CallAfter(*delay, [this] { RestartMaster(); });
}

// Replicas know the address of the master, so it may change only before the first one is launched.
void Supervisor::OnPortInUse() {
  const int port = master_port_;
  if (++port_tries_ > options_.port_tries) {
    return EndReplicas(
        kFailedCode,
        fmt::format(
            "another program listens on 127.0.0.1:{}, the port of the master, after {} attempts; "
            "end that program (`ss -ltnp 'sport = :{}'` shows it), then continue with "
            "`elasticdl train --resume`",
            port, options_.port_tries, port));
  }
  if (replicas_.empty() && options_.master_port == 0) {
    const Result<std::string> address = ReserveMasterAddress();
    if (!address.ok()) return EndReplicas(kFailedCode, address.status().message());
    LOG_WARNING("another program uses port {}: the master now uses {}", port, master_port_);
    return RestartMaster();
  }
  if (port_tries_ == 1) {
    LOG_WARNING("another program listens on the port of the master, {}; retrying every {} ms", port,
                options_.port_pause.count());
  }
  loop_.CallAfter(options_.port_pause, [this] { RestartMaster(); });
}

void Supervisor::Shutdown(const std::string& reason) {
  const bool again = phase_ != Phase::kRunning;
  LOG_INFO("ending the job: {}", reason);
  if (!again) ending_.reason = reason;
  if (phase_ == Phase::kRunning && !master_.has_value()) return EndReplicas(kStoppedCode, reason);
  if (phase_ == Phase::kRunning) phase_ = Phase::kEndingMaster;
  const std::chrono::milliseconds none{0};
  if (master_.has_value()) master_->Stop(again ? none : options_.master_grace);
  if (!again) return;
  for (auto& [name, replica] : replicas_) {
    if (replica.process.has_value()) replica.process->Stop(none);
  }
}

void Supervisor::EndReplicas(int exit_code, const std::string& reason) {
  phase_ = Phase::kEndingReplicas;
  ending_ = {.exit_code = exit_code, .reason = reason};
  if (!reason.empty()) LOG_INFO("ending all replicas: {}", reason);
  for (auto& [name, replica] : replicas_) {
    if (replica.process.has_value()) replica.process->Stop(options_.replica_grace);
  }
  // A process that the kernel cannot kill must not keep the agent alive.
  loop_.CallAfter(options_.replica_grace + kEndTimeout, [this] { end_ = ending_; });
  FinishIfAllEnded();
}

void Supervisor::FinishIfAllEnded() {
  if (phase_ != Phase::kEndingReplicas || master_.has_value()) return;
  const bool busy = std::any_of(replicas_.begin(), replicas_.end(),
                                [](const auto& named) { return named.second.process.has_value(); });
  if (!busy) end_ = ending_;
}

void Supervisor::Reap() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void Supervisor::KillOrphansOf(pid_t lost_shim) {
  // Its socket is closed, but its children are reparented to this process only when it is dead.
  while (waitpid(lost_shim, nullptr, 0) < 0 && errno == EINTR) {
  }
  // Every process of a job is below a live shim, except those whose shim was killed.
  std::set<pid_t> shims;
  if (master_.has_value()) shims.insert(master_->shim());
  for (const auto& [name, replica] : replicas_) {
    if (replica.process.has_value()) shims.insert(replica.process->shim());
  }
  shims.erase(lost_shim);
  EndDescendants(shims);
}

}  // namespace edl::backend::local
