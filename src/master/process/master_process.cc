#include "master/process/master_process.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/attached_backend.h"
#include "backend/kubernetes/cluster_master.h"
#include "backend/kubernetes/pod_maker.h"
#include "backend/local/agent.h"
#include "backend/local/local_backend.h"
#include "base/clock.h"
#include "base/descriptor_limit.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/text.h"
#include "job/job_spec.h"
#include "job/master_exit.h"
#include "job/progress.h"
#include "master/core.h"
#include "master/ledger/ledger.h"
#include "master/ledger/submission.h"
#include "master/process/http_pages.h"
#include "master/process/master_config.h"
#include "master/replicas/replica_launcher.h"
#include "master/service/loop.h"
#include "master/service/server.h"
#include "master/status_writer.h"
#include "ps_control/ps_controller.h"

namespace edl::master {
namespace {

// The id that users of this machine see: the agent gives it to a master in a PID namespace.
int64_t ProcessId(const std::map<std::string, std::string>& environment) {
  const auto given = environment.find(backend::local::kHostProcessIdVariable);
  const int64_t id = given == environment.end() ? 0 : std::atoll(given->second.c_str());
  return id > 0 ? id : getpid();
}

// Whether this process can listen on the port of 127.0.0.1 now.
Status CheckPort(const std::string& port) {
  const FileDescriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return Errno("making a socket");
  const int on = 1;
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(port.c_str())));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(probe.get(), 1) != 0) {
    return Errno("the master cannot listen on 127.0.0.1:{}", port);
  }
  return Ok();
}

// The port in a file with an address; 0: there is none.
int PortIn(const std::filesystem::path& file) {
  const Result<std::string> address = ReadFile(file);
  const Result<HostPort> at = address.ok() ? ParseHostPort(Trim(*address)) : address.status();
  return at.ok() ? at->port : 0;
}

// Ends the master by a signal. The agent then starts a new one, which reads the ledger and learns
// from the agent which replicas run.
void EndToReconnect() {
  LOG_ERROR("lost the connection to the agent; this master ends, and the agent starts a new one");
  kill(getpid(), SIGKILL);
}

int ExitCodeOf(job::JobState state) {
  if (state == job::JobState::kSucceeded) return job::kMasterSucceeded;
  return state == job::JobState::kStopped ? job::kMasterStopped : job::kMasterFailed;
}

// In the job's folder: the address of the HTTP server.
constexpr const char* kHttpAddressFile = "http.addr";

// A running master: the core, its loop and server, and the launcher of replicas.
class Master {
 public:
  Master(const MasterConfig& config, const Clock& clock) : config_(config), clock_(clock) {}

  // Returns only if the master cannot start, with the reason. Otherwise the process exits when the
  // job has ended.
  Status Run() {
    const std::map<std::string, std::string> environment = Environment();
    if (!config_.cluster.has_value()) {
      // Checked before the ledger counts a start of the master, because the agent may have to start
      // the master many times until the port is free.
      if (const Status free = CheckPort(config_.port); !free.ok()) {
        LOG_ERROR("{}", free.message());
        _exit(backend::local::kPortTakenCode);
      }
    } else {
      EDL_ASSIGN_OR_RETURN(cluster_, backend::kubernetes::ClusterMaster::Make(
                                         config_.job, *config_.cluster, clock_, environment));
      EDL_RETURN_IF_ERROR(cluster_->AcquireLedger());
    }
    Result<Ledger> opened = OpenLedger();
    if (!opened.ok()) {
      PublishFailure(opened.status().message());
      return opened.status();
    }
    Ledger ledger = *std::move(opened);
    std::unique_ptr<backend::Backend> local;
    backend::AttachedBackend* attached = nullptr;  // --attach_workers: the same object as `local`
    if (cluster_ == nullptr && !config_.job.external_replicas) {
      EDL_ASSIGN_OR_RETURN(local, backend::local::LocalBackend::Connect(
                                      config_.folder, {.on_lost = EndToReconnect}));
      if (config_.job.attach_workers) {
        auto decorated = std::make_unique<backend::AttachedBackend>(std::move(local));
        attached = decorated.get();
        local = std::move(decorated);
      }
    }
    // Null: the replicas of the job are external.
    backend::Backend* backend = cluster_ != nullptr ? &cluster_->backend() : local.get();
    std::random_device random;
    Core core(ledger, config_.job, (uint64_t{random()} << 32) | random());
    core.set_process_id(ProcessId(environment));
    if (Result<std::string> boot = ReadFile("/proc/sys/kernel/random/boot_id"); boot.ok()) {
      core.set_boot(*std::move(boot));
    }
    EDL_RETURN_IF_ERROR(core.Load(clock_.Now(), clock_.WallNow()));
    if (job::IsFinal(core.state())) {
      LOG_INFO(
          "according to the ledger, this submission of job {} {}: there is nothing to do; "
          "`elasticdl train --resume` continues it",
          config_.job.job_name, job::NameOf(core.state()));
      WriteStatus(core.View(), Durability::kDurable);
      EndWith(core);
    }
    EDL_RETURN_IF_ERROR(core.Commit());

    const bool in_pod = cluster_ != nullptr || config_.job.external_replicas;
    const std::string address = (in_pod ? "0.0.0.0:" : "127.0.0.1:") + config_.port;
    std::optional<ReplicaLauncher> launcher;
    if (backend != nullptr) launcher.emplace(*backend, config_.job, ContextOfReplicas(address));
    StatusWriter status(
        [this](const job::JobView& view, Durability durability) { WriteStatus(view, durability); });
    Loop loop(
        core, clock_,
        {.commands =
             [&](std::vector<Command> commands) {
               if (launcher) launcher->Do(std::move(commands));
             },
         .server_commands =
             [&](std::vector<ServerCommand> commands) {
               if (servers_ != nullptr) servers_->Do(std::move(commands));
             },
         .view = [&](const job::JobView& view) { status.Update(view, Durability::kDurable); },
         // On this machine the client queries the master, so the file may lag behind.
         .progress = !in_pod
                         ? nullptr
                         : std::function<void(const job::JobView&)>([&](const job::JobView& view) {
                             status.Update(view, Durability::kBestEffort);
                           }),
         .fence = cluster_ == nullptr ? nullptr
                                      : std::function<void()>([&] { cluster_->AwaitLedger(); }),
         .scan =
             [&](std::vector<std::string> replicas) {
               if (launcher) launcher->Scan(std::move(replicas));
             }});
    EDL_ASSIGN_OR_RETURN(const auto server,
                         Server::Start(address, config_.token, config_.job, core,
                                       {.backend = attached, .post = [&loop](auto work) {
                                          loop.Post(std::move(work));
                                        }}));
    const std::unique_ptr<http::PageServer> pages = StartHttp(loop, core);
    if (config_.job.own_ps) {
      if (config_.job.grads_to_wait == 0) {
        LOG_INFO(
            "gradients are applied one by one, and none is rejected as stale; for synchronous "
            "rounds give --use_async=false and --grads_to_wait of 2 or more");
      }
      EDL_ASSIGN_OR_RETURN(servers_, StartPsController(loop, *backend));
    }
    if (launcher) {
      StartLauncher(*launcher, loop);
    } else {
      loop.Post(
          [](Core& core) { core.OnReplicaEvent({.kind = job::ReplicaEvent::Kind::kSynced}, {}); });
    }
    if (cluster_ != nullptr) {
      WatchRequests(loop);
      AwaitSync();
    }
    const Status ran = loop.Run(server->queue());
    status.Flush();
    if (!ran.ok()) {
      LOG_ERROR(
          "cannot write the ledger: {}; the job stops, and no completed batch is lost: free disk "
          "space and continue with `elasticdl train --resume`",
          ran.message());
      _exit(job::kMasterBadConfiguration);
    }
    // Makes the database file alone the whole ledger.
    const Status checkpointed = ledger.Checkpoint();
    if (!checkpointed.ok()) {
      LOG_WARNING("cannot move the ledger's write-ahead log into the database file: {}",
                  checkpointed.message());
    }
    EndWith(core);
  }

 private:
  using Durability = StatusWriter::Durability;

  ReplicaContext ContextOfReplicas(const std::string& address) const {
    return {.master_address = cluster_ != nullptr ? cluster_->master_address() : address,
            .token_file = config_.token_file.string(),
            .job_dir = cluster_ != nullptr ? "" : config_.folder.string(),
            .program = cluster_ != nullptr ? "elasticdl" : ThisProgram(),
            .on_this_machine = cluster_ == nullptr,
            .checkpoint_roots = CheckpointRoots(),
            .checkpoint_folder = std::filesystem::absolute(CheckpointFolder()).string(),
            .master_env = Environment(),
            .ps_http_port = cluster_ != nullptr ? backend::kubernetes::kPsHttpPort : 0};
  }

  // Starts the HTTP server and has its address shown. Null: the user or the kind of job wants none,
  // or its port is in use. The job does not need it.
  std::unique_ptr<http::PageServer> StartHttp(Loop& loop, Core& core) const {
    const bool in_pod = cluster_ != nullptr;
    if (config_.job.external_replicas || (!in_pod && config_.job.master_http_port < 0)) {
      return nullptr;
    }
    HttpOptions options{.host = in_pod ? "" : "127.0.0.1",
                        .port = config_.job.master_http_port,
                        .token = config_.job.metrics_without_token ? "" : config_.token,
                        .job_name = config_.job.job_name};
    const std::filesystem::path file = config_.folder / kHttpAddressFile;
    if (in_pod) {
      options.port = backend::kubernetes::kMasterHttpPort;
    } else if (options.port == 0) {
      options.port = PortIn(file);  // of the master before this one, so that readers find it again
    }
    auto started = StartPages(loop, options);
    if (!started.ok() && !in_pod && config_.job.master_http_port == 0) {
      options.port = 0;
      started = StartPages(loop, options);
    }
    if (!started.ok()) {
      LOG_WARNING("the job runs without /metrics: {}", started.status().message());
      return nullptr;
    }
    const std::map<std::string, std::string> environment = Environment();
    const auto ip = environment.find("MY_POD_IP");
    const std::string host = in_pod && ip != environment.end() ? ip->second : "127.0.0.1";
    const std::string address = fmt::format("{}:{}", host, (*started)->port());
    if (const Status written = WriteFileAtomically(file, address); !written.ok()) {
      LOG_WARNING("{}", written.message());
    }
    core.set_http_address(address);
    LOG_INFO("metrics on http://{}/metrics", address);
    return *std::move(started);
  }

  void StartLauncher(ReplicaLauncher& launcher, Loop& loop) {
    launcher.Start(
        [this, &loop](const job::ReplicaEvent& event, std::vector<std::string> last_lines) {
          OnEvent(event);
          loop.Post([event, last_lines = std::move(last_lines)](Core& core) {
            core.OnReplicaEvent(event, last_lines);
          });
        },
        [&loop](const std::string& replica, std::string text) {
          loop.Post([replica, text = std::move(text)](Core& core) { core.OnLog(replica, text); });
        });
  }

  [[noreturn]] void EndWith(const Core& core) {
    // The kubelet shows the end of the log of a container that fails.
    if (config_.job.external_replicas) LOG_ERROR("the job ends: {}", core.View().reason);
    if (cluster_ != nullptr) {
      using Outcome = backend::kubernetes::ClusterMaster::Outcome;
      const bool succeeded = core.state() == job::JobState::kSucceeded;
      cluster_->End(core.View().reason, succeeded ? Outcome::kSucceeded : Outcome::kFailed);
    }
    // Calls that are still held end with the process. Their callers have exited, so to wait for
    // these calls would only delay the end.
    _exit(ExitCodeOf(core.state()));
  }

  // Publishes why the master cannot start, because its log is lost when its pod is deleted.
  void PublishFailure(const std::string& reason) {
    if (cluster_ == nullptr) return;
    const job::JobView view{
        .name = config_.job.job_name, .reason = reason, .version = config_.job.resume_version};
    cluster_->Publish(view);
    cluster_->End(reason, backend::kubernetes::ClusterMaster::Outcome::kFailed);
  }

  // Folders that parameter servers may save to and restore from.
  std::vector<std::string> CheckpointRoots() const {
    const std::string& given = config_.job.checkpoint_dir;
    std::vector<std::string> roots = {std::filesystem::absolute(
        given.empty() ? config_.folder / "checkpoints" : std::filesystem::path(given))};
    if (const std::string& init = config_.job.checkpoint_dir_for_init; !init.empty()) {
      roots.push_back(std::filesystem::absolute(init));
    }
    return roots;
  }

  // Where the checkpoints of this job are.
  std::filesystem::path CheckpointFolder() const {
    const std::filesystem::path given = config_.job.checkpoint_dir;
    return given.empty() ? config_.folder / "checkpoints" : given / config_.job.job_name;
  }

  Result<std::unique_ptr<ps_control::PsController>> StartPsController(Loop& loop,
                                                                      backend::Backend& backend) {
    ps_control::PsController::Answers answers;
    answers.probed = [&loop](PsCommandId number, const Result<ProbeReply>& reply) {
      loop.Post([number, reply](Core& core) { core.OnProbed(number, reply); });
    };
    answers.restored = [&loop](PsCommandId number, const Status& status) {
      loop.Post([number, status](Core& core) { core.OnRestored(number, status); });
    };
    answers.saved = [&loop](PsCommandId number, const Status& status) {
      loop.Post([number, status](Core& core) { core.OnSaved(number, status); });
    };
    answers.state = [&loop](const job::ServerView& view) {
      loop.Post([view](Core& core) { core.OnServerState(view); });
    };
    answers.alive = [&loop](int index, PsIncarnation incarnation) {
      loop.Post([index, incarnation](Core& core) { core.OnServerAlive(index, incarnation); });
    };
    return ps_control::PsController::Start(
        {.servers = config_.job.num_ps,
         .token = config_.token,
         .core = {.folder = CheckpointFolder()}},
        [&backend](int index) { return backend.AddressOf(job::Role::kPs, index); }, answers,
        clock_);
  }

  // Retries while the ledger is locked: a file server may keep the locks of a dead master for a
  // minute or two.
  Result<Ledger> OpenLedger() {
    constexpr std::chrono::seconds kPause{2};
    const Duration timeout = cluster_ != nullptr ? Duration(std::chrono::minutes(5))
                                                 : Duration(std::chrono::seconds(10));
    const Time deadline = clock_.Now() + timeout;
    while (true) {
      Result<Ledger> ledger = master::OpenLedger(config_.folder, config_.job);
      if (ledger.status().code() != Code::kUnavailable || clock_.Now() >= deadline) return ledger;
      LOG_WARNING("{}; retrying", ledger.status().message());
      std::this_thread::sleep_for(kPause);
    }
  }

  // Runs on the thread of the status writer.
  void WriteStatus(const job::JobView& view, Durability durability) {
    const std::string json = view.ToJson();
    if (durability == Durability::kDurable) {
      const Status written = WriteFileAtomically(config_.folder / "status.json", json);
      if (!written.ok()) LOG_WARNING("{}", written.message());
    }
    if (cluster_ != nullptr) cluster_->Publish(view);
    if (config_.job.external_replicas) LogProgress(view);
  }

  // Runs on the thread of the status writer.
  void LogProgress(const job::JobView& view) {
    std::string progress = job::ProgressOf(view);
    if (progress.empty() || progress == logged_progress_) return;
    logged_progress_ = std::move(progress);
    LOG_INFO("{}", job::ProgressMessage(logged_progress_));
  }

  void OnEvent(const job::ReplicaEvent& event) {
    if (cluster_ == nullptr) return;
    cluster_->RecordWarning(event);
    if (event.kind != job::ReplicaEvent::Kind::kSynced) return;
    const MutexLock lock(mutex_);
    synced_ = true;
    changed_.NotifyAll();
  }

  // Carries out what users request at the master's pod: `elasticdl stop` and `scale`.
  void WatchRequests(Loop& loop) {
    cluster_->WatchRequests(
        [&](const std::string& reason) { loop.Post([reason](Core& core) { core.Stop(reason); }); },
        [&](int workers) {
          loop.Post([workers](Core& core) {
            const Status scaled = core.Scale(workers);
            if (!scaled.ok()) {
              LOG_WARNING("cannot scale the job to {} workers: {}", workers, scaled.message());
            }
          });
        });
  }

  // Waits until the backend has reported all replicas. Published clients are recognised by the
  // addresses of their replicas; a call that arrives earlier waits in the server's queue.
  void AwaitSync() {
    constexpr std::chrono::seconds kSyncTimeout{10};
    const auto deadline = std::chrono::steady_clock::now() + kSyncTimeout;
    const MutexLock lock(mutex_);
    while (!synced_) {
      if (!changed_.WaitUntil(mutex_, deadline)) break;
    }
    if (!synced_) {
      LOG_WARNING("the API server has not listed the pods of the job within {} s; continuing",
                  kSyncTimeout.count());
    }
  }

  const MasterConfig& config_;
  const Clock& clock_;
  std::unique_ptr<backend::kubernetes::ClusterMaster> cluster_;  // null: this machine
  std::unique_ptr<ps_control::PsController> servers_;  // null: no parameter servers of ours
  std::string logged_progress_;  // only the thread of the status writer uses it
  Mutex mutex_;
  CondVar changed_;
  bool synced_ GUARDED_BY(mutex_) = false;
};

}  // namespace

int RunMaster(int argc, char** argv) {
  const Result<MasterConfig> config = ReadMasterConfig({argv, argv + argc});
  if (!config.ok()) {
    LOG_ERROR("{}", config.status().message());
    return job::kMasterBadConfiguration;
  }
  SetLogLevel(config->job.log_level);
  // Each process of the job has a connection.
  if (const auto raised = RaiseDescriptorLimit(); !raised.ok()) {
    LOG_WARNING("{}", raised.status().message());
  }
  const SystemClock clock;
  const Status ended = Master(*config, clock).Run();
  LOG_ERROR("the master cannot start: {}", ended.message());
  return job::kMasterBadConfiguration;
}

}  // namespace edl::master
