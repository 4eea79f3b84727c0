#include "master/replicas/replica_launcher.h"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/host_port.h"
#include "base/json.h"
#include "base/log.h"
#include "job/model_command.h"
#include "job/names.h"
#include "job/tf_config.h"
#include "master/replicas/local_address.h"

namespace edl::master {
namespace {

constexpr int64_t kLogPieceBytes = int64_t{256} << 10;
constexpr int64_t kLastBytes = 8192;
constexpr size_t kLastLines = 20;
// Calls to a cluster at the same time. One after the other, a thousand pods would take a thousand
// round trips.
constexpr size_t kConcurrentCalls = 8;

const std::string& NameOf(const Command& command) {
  return std::visit([](const auto& any) -> const std::string& { return any.name; }, command);
}

std::vector<std::string> LastLines(const std::string& text) {
  std::vector<std::string> lines;
  size_t start = 0;
  while (start < text.size()) {
    size_t end = text.find('\n', start);
    if (end == std::string::npos) end = text.size();
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  return lines;
}

// Whether replicas copy their output to --log_file_path. On this machine it is in files anyway.
bool WritesLogFile(const job::JobSpec& job) {
  return job.backend == job::BackendKind::kKubernetes && !job.log_file_path.empty();
}

std::vector<std::string> CommandOf(const job::JobSpec& job) {
  if (!WritesLogFile(job)) return job::WorkerCommand(job);
  if (job.model) {
    // The arguments are not part of the script, so the shell does not interpret them.
    std::vector<std::string> command = {
        "/bin/bash", "-c", "set -o pipefail;\"$@\" 2>&1 | tee \"$ELASTICDL_LOG_FILE\"", "bash"};
    for (std::string& word : job::WorkerCommand(job)) command.push_back(std::move(word));
    return command;
  }
  return job::ShellCommand(fmt::format("({}) 2>&1 | tee \"$ELASTICDL_LOG_FILE\"", job.job_command));
}

using Addresses = std::map<job::Role, std::vector<std::string>>;

std::vector<std::string> CommandOfServer(const job::JobSpec& job, const ReplicaContext& context,
                                         int index, int64_t lanes, const std::string& address) {
  const HostPort at = ParseHostPort(address).value();  // a backend's addresses are well-formed
  std::vector<std::string> command = {
      context.program,
      "ps",
      "--managed",
      fmt::format("--port={}", at.port),
      "--host=" + (context.on_this_machine ? at.host : std::string()),
      fmt::format("--index={}", index),
      fmt::format("--servers={}", job.num_ps),
      "--token_file=" + context.token_file,
      "--job_name=" + job.job_name};
  if (context.ps_http_port > 0) {
    command.push_back(fmt::format("--http_port={}", context.ps_http_port));
    if (job.metrics_without_token) command.emplace_back("--metrics_without_token");
  }
  if (lanes > 0) command.push_back(fmt::format("--lanes={}", lanes));
  for (const std::string& root : context.checkpoint_roots) {
    command.push_back("--checkpoint_root=" + root);
  }
  return command;
}

// The JSON of the argument `consistency` of elasticdl.ParameterClient.declare.
std::string ConsistencyOf(const job::JobSpec& job) {
  return Dump(nlohmann::json{{"gradients", job.grads_to_wait},
                             {"tolerance", job.sync_version_tolerance},
                             {"modulate", job.lr_staleness_modulation}});
}

std::string Joined(const std::vector<std::string>& items) {
  return fmt::format("{}", fmt::join(items, ","));
}

constexpr size_t kLongestVariable = 128 << 10;  // MAX_ARG_STRLEN of Linux

}  // namespace

job::ReplicaSpec MakeReplicaSpec(const LaunchCommand& command, const job::JobSpec& job,
                                 const ReplicaContext& context,
                                 const std::map<job::Role, std::vector<std::string>>& addresses) {
  const job::Role role = command.replica.role;
  job::ReplicaSpec spec{.name = command.name,
                        .role = role,
                        .index = command.index,
                        .id = command.replica.id,
                        .command = CommandOf(job),
                        .volumes = job.volumes,
                        .memory_limit_bytes = command.memory_bytes};
  if (!job.populate_env_names.empty()) {
    const std::regex names(job.populate_env_names);  // checked with the job's flags
    for (const auto& [name, value] : context.master_env) {
      if (std::regex_match(name, names)) spec.env[name] = value;
    }
  }
  for (const auto& [name, value] : job.envs) spec.env[name] = value;
  spec.env["MASTER_ADDR"] = context.master_address;
  spec.env["DLROVER_MASTER_ADDR"] = context.master_address;
  spec.env["WORKER_ID"] = std::to_string(job::WorkerIdOf(role, command.replica.id));
  spec.env["WORKER_TYPE"] = std::string(job::NameOf(role));
  spec.env["WORKER_NUM"] = std::to_string(command.num_workers);
  if (context.on_this_machine) spec.env["MY_POD_IP"] = LocalAddress(command.replica);
  spec.env["ELASTICDL_ENABLED"] = "true";
  spec.env["RELAUNCHED_POD"] = command.relaunched ? "true" : "false";
  spec.env["ELASTICDL_TOKEN_FILE"] = context.token_file;
  spec.env["ELASTICDL_JOB_NAME"] = job.job_name;
  spec.env["ELASTICDL_REPLICA_ID"] = std::to_string(command.replica.id);
  spec.env["ELASTICDL_REPLICA_INDEX"] = std::to_string(command.index);
  if (!context.job_dir.empty()) spec.env["ELASTICDL_JOB_DIR"] = context.job_dir;
  if (WritesLogFile(job)) spec.env["ELASTICDL_LOG_FILE"] = job.log_file_path;
  if (job.own_ps) {
    const std::vector<std::string>& servers = addresses.at(job::Role::kPs);
    spec.env["ELASTICDL_PS_ADDRS"] = Joined(servers);
    spec.env["ELASTICDL_CONSISTENCY"] = ConsistencyOf(job);
    spec.env["ELASTICDL_MAX_STALENESS"] = std::to_string(job.max_staleness);
    if (job.recovery_checkpoint_secs > 0) {
      spec.env["ELASTICDL_CHECKPOINTS"] = context.checkpoint_folder;
    }
    if (role == job::Role::kPs) {
      spec.command = CommandOfServer(job, context, command.index, command.ps_lanes,
                                     servers.at(static_cast<size_t>(command.index)));
    }
  }
  if (job.need_tf_config) {
    spec.env["TF_CONFIG"] = job::TfConfig(addresses, role, command.index);
  }
  return spec;
}

ReplicaLauncher::ReplicaLauncher(backend::Backend& backend, const job::JobSpec& job,
                                 ReplicaContext context)
    : backend_(backend),
      job_(job),
      context_(std::move(context)),
      queue_count_(context_.on_this_machine ? 1 : kConcurrentCalls),
      queues_(queue_count_) {}

ReplicaLauncher::~ReplicaLauncher() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : command_threads_) thread.join();
  if (reader_.joinable()) reader_.join();
}

void ReplicaLauncher::Start(PostEvent post_event, PostLog post_log) {
  post_event_ = std::move(post_event);
  post_log_ = std::move(post_log);
  for (size_t queue = 0; queue < queue_count_; ++queue) {
    command_threads_.emplace_back([this, queue] { RunCommands(queue); });
  }
  reader_ = std::thread([this] { ReadLogs(); });
  backend_.Watch([this](const job::ReplicaEvent& event) { OnEvent(event); });
}

void ReplicaLauncher::Do(std::vector<Command> commands) {
  {
    const MutexLock lock(mutex_);
    for (Command& command : commands) {
      const size_t queue = std::hash<std::string>()(NameOf(command)) % queues_.size();
      queues_[queue].push_back(std::move(command));
    }
  }
  changed_.NotifyAll();
}

void ReplicaLauncher::Scan(std::vector<std::string> replicas) {
  const MutexLock lock(mutex_);
  scan_ = std::move(replicas);
}

void ReplicaLauncher::RunCommands(size_t queue) {
  while (true) {
    std::deque<Command> commands;
    {
      const MutexLock lock(mutex_);
      while (queues_[queue].empty() && !ending_) changed_.Wait(mutex_);
      if (ending_) return;
      std::swap(commands, queues_[queue]);
    }
    for (const Command& command : commands) Run(command);
  }
}

void ReplicaLauncher::ReadLogs() {
  constexpr std::chrono::milliseconds kScanEvery{500};
  while (true) {
    const auto next_scan = std::chrono::steady_clock::now() + kScanEvery;
    std::vector<std::string> scan;
    {
      const MutexLock lock(mutex_);
      while (!ending_ && changed_.WaitUntil(mutex_, next_scan)) {
      }
      if (ending_) return;
      scan = scan_;
    }
    for (const std::string& replica : scan) ReadNewOutput(replica);
  }
}

void ReplicaLauncher::Run(const Command& command) {
  if (const auto* launch = std::get_if<LaunchCommand>(&command)) {
    if (const Status status = Launch(*launch); !status.ok()) {
      post_event_(
          {.name = launch->name,
           .kind = job::ReplicaEvent::Kind::kExited,
           .cause = {.kind = job::ExitCause::Kind::kNotLaunched,
                     .message = fmt::format("could not be launched: {}", status.message())}},
          {});
    }
  } else if (const auto* stop = std::get_if<StopCommand>(&command)) {
    if (const Status status = backend_.Stop(stop->name, stop->grace); !status.ok()) {
      LOG_WARNING("stopping {}: {}", stop->name, status.message());
    }
  } else if (const auto* acknowledge = std::get_if<AcknowledgeCommand>(&command)) {
    if (const Status status = backend_.Acknowledge(acknowledge->name); !status.ok()) {
      LOG_WARNING("acknowledging the exit of {}: {}", acknowledge->name, status.message());
    }
  }
}

Status CheckEnvironment(const job::ReplicaSpec& spec) {
  for (const auto& [name, value] : spec.env) {
    const size_t size = name.size() + 1 + value.size() + 1;
    if (size <= kLongestVariable) continue;
    return InvalidArgument(
        "the environment variable {} has {} bytes, and Linux limits a variable to {}: shorten it; "
        "TF_CONFIG and ELASTICDL_PS_ADDRS have an address for each replica, so use fewer replicas",
        name, size, kLongestVariable);
  }
  return Ok();
}

Status ReplicaLauncher::Launch(const LaunchCommand& command) {
  std::map<job::Role, std::vector<std::string>> addresses;
  for (const job::Role role : job::kReplicaRoles) {
    if (job_.need_tf_config || (job_.own_ps && role == job::Role::kPs)) {
      for (int index = 0; index < job_.CountOf(role); ++index) {
        EDL_ASSIGN_OR_RETURN(std::string address, backend_.AddressOf(role, index));
        addresses[role].push_back(std::move(address));
      }
    }
  }
  const job::ReplicaSpec spec = MakeReplicaSpec(command, job_, context_, addresses);
  EDL_RETURN_IF_ERROR(CheckEnvironment(spec));
  return backend_.Launch(spec);
}

void ReplicaLauncher::OnEvent(const job::ReplicaEvent& event) {
  std::vector<std::string> last_lines;
  if (event.kind == job::ReplicaEvent::Kind::kExited &&
      event.cause.kind != job::ExitCause::Kind::kKilled) {
    // The last lines (about the last checkpoint) must be posted before the exit. On a cluster they
    // are downloaded, so only for replicas whose output has progress.
    if (context_.on_this_machine || LogsProgress(event.name)) ReadNewOutput(event.name);
    if (event.cause.kind != job::ExitCause::Kind::kSucceeded) last_lines = LastLinesOf(event.name);
  }
  post_event_(event, std::move(last_lines));
}

bool ReplicaLauncher::LogsProgress(const std::string& replica) const {
  return std::ranges::any_of(
      std::array{job::Role::kChief, job::Role::kEvaluator}, [&](job::Role role) {
        const std::optional<std::string> label = job::ReplicaLabel(job_.job_name, replica);
        return label && label->starts_with(fmt::format("{}-", job::NameOf(role)));
      });
}

std::vector<std::string> ReplicaLauncher::LastLinesOf(const std::string& replica) {
  // The next events wait for this call, so it is limited. The lines are for the message of a job
  // that fails, and one replica is enough for that.
  constexpr size_t kMostTails = 20;
  constexpr std::chrono::seconds kWithin{10};
  const auto now = std::chrono::steady_clock::now();
  while (!tails_read_.empty() && now - tails_read_.front() > kWithin) tails_read_.pop_front();
  if (tails_read_.size() >= kMostTails) return {};
  tails_read_.push_back(now);
  const Result<std::string> tail = backend_.Tail(replica, kLastLines, kLastBytes);
  return tail.ok() ? LastLines(*tail) : std::vector<std::string>();
}

void ReplicaLauncher::ReadNewOutput(const std::string& replica) {
  const MutexLock lock(log_mutex_);
  int64_t& offset = offsets_[replica];
  while (true) {
    auto piece = backend_.Logs(replica, offset, kLogPieceBytes);
    if (!piece.ok() || piece->text.empty()) return;
    offset = piece->next_offset;
    post_log_(replica, std::move(piece->text));
  }
}

}  // namespace edl::master
