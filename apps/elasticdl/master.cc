#include "apps/elasticdl/master.h"

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

#include "apps/elasticdl/cluster_master.h"
#include "apps/elasticdl/ps_controller.h"
#include "backend/local/agent.h"
#include "backend/local/local_backend.h"
#include "base/clock.h"
#include "base/cpus.h"
#include "base/descriptor_limit.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "job/cluster_options.h"
#include "job/job_file.h"
#include "job/job_spec.h"
#include "job/train_flags.h"
#include "master/core.h"
#include "master/ledger.h"
#include "master/loop.h"
#include "master/replica_launcher.h"
#include "master/server.h"
#include "master/status_writer.h"
#include "master/submission.h"

namespace edl::apps {
namespace {

// What the agent and the client make of the master's end.
constexpr int kSucceeded = 0;
constexpr int kFailed = 1;
constexpr int kBadConfiguration = 2;
constexpr int kStopped = 3;

std::map<std::string, std::string> Environment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (const size_t at = text.find('='); at != std::string::npos) {
      environment[text.substr(0, at)] = text.substr(at + 1);
    }
  }
  return environment;
}

std::string ThisProgram() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "elasticdl" : program.string();
}

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

// A death by a signal is what the agent answers with a new master, which reads the ledger and hears
// which replicas run.
void EndToReconnect() {
  LOG_ERROR("the connection to the agent is lost: this master ends, and the next one connects");
  kill(getpid(), SIGKILL);
}

int ExitCodeOf(job::JobState state) {
  if (state == job::JobState::kSucceeded) return kSucceeded;
  return state == job::JobState::kStopped ? kStopped : kFailed;
}

// Lanes of a parameter server where --ps_lanes does not say. In a cluster its machine is not known
// yet, and what it asks for is.
int64_t DefaultPsLanes(const job::JobSpec& job) {
  constexpr int64_t kMost = 16;
  if (job.backend != job::BackendKind::kKubernetes) {
    return std::clamp<int64_t>(UsableCpus(), 1, kMost);
  }
  const auto found = job.resources.find(job::Role::kPs);
  if (found == job.resources.end()) return 1;
  const double cpu = std::max(found->second.request.cpu, found->second.limit.cpu);
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(cpu)), 1, kMost);
}

struct Setting {
  job::JobSpec job;
  std::optional<job::ClusterOptions> cluster;  // none: this machine
  std::filesystem::path folder;
  std::filesystem::path token_file;
  std::string token;
  std::string port;
};

Result<Setting> ReadSetting(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  EDL_ASSIGN_OR_RETURN(const FlagValues flags,
                       job::ParseWithJobFile(job::MasterFlags(), arguments));
  Setting setting;
  EDL_ASSIGN_OR_RETURN(setting.job, job::MakeJobSpec(flags));
  if (setting.job.backend == job::BackendKind::kKubernetes) {
    EDL_ASSIGN_OR_RETURN(setting.cluster, job::MakeClusterOptions(flags));
    setting.job.checkpoint_dir = setting.job.ClusterCheckpointDir();
    // `elasticdl train` has said what that means.
    if (setting.job.checkpoint_dir.empty()) setting.job.recovery_checkpoint_secs = 0;
  }
  setting.job.default_ps_lanes = DefaultPsLanes(setting.job);
  setting.folder = flags.Text("job_dir");
  if (setting.folder.empty()) {
    return InvalidArgument("the master needs --job_dir: it is started by `elasticdl train`");
  }
  const std::filesystem::path secrets = flags.Text("secret_dir");
  setting.token_file = (secrets.empty() ? setting.folder : secrets) / "token";
  EDL_ASSIGN_OR_RETURN(setting.token, ReadFile(setting.token_file));
  while (!setting.token.empty() && setting.token.back() == '\n') setting.token.pop_back();
  setting.port = flags.Text("port");
  return setting;
}

// A master at work: the core, its loop and server, and the hands that reach the backend.
class Master {
 public:
  Master(const Setting& setting, const Clock& clock) : setting_(setting), clock_(clock) {}

  // Returns only what keeps it from starting: the process ends with the job.
  Status Run() {
    const std::map<std::string, std::string> environment = Environment();
    if (!setting_.cluster.has_value()) {
      // Before the ledger counts a start of the master: the agent tries again, many times if
      // needed.
      if (const Status free = CheckPort(setting_.port); !free.ok()) {
        LOG_ERROR("{}", free.message());
        _exit(backend::local::kPortTakenCode);
      }
    } else {
      EDL_ASSIGN_OR_RETURN(
          cluster_, ClusterMaster::Make(setting_.job, *setting_.cluster, clock_, environment));
      EDL_RETURN_IF_ERROR(cluster_->AcquireLedger());
    }
    Result<master::Ledger> opened = OpenLedger();
    if (!opened.ok()) {
      TellCluster(opened.status().message());
      return opened.status();
    }
    master::Ledger ledger = *std::move(opened);
    std::unique_ptr<backend::Backend> local;
    if (cluster_ == nullptr) {
      EDL_ASSIGN_OR_RETURN(local, backend::local::LocalBackend::Connect(
                                      setting_.folder, {.on_lost = EndToReconnect}));
    }
    backend::Backend& backend = cluster_ != nullptr ? cluster_->backend() : *local;
    std::random_device random;
    master::Core core(ledger, setting_.job, (uint64_t{random()} << 32) | random());
    core.set_process_id(ProcessId(environment));
    if (Result<std::string> boot = ReadFile("/proc/sys/kernel/random/boot_id"); boot.ok()) {
      core.set_boot(*std::move(boot));
    }
    EDL_RETURN_IF_ERROR(core.Load(clock_.Now(), clock_.WallNow()));
    if (job::IsFinal(core.state())) {
      LOG_INFO(
          "the ledger says that this submission of job {} {}: there is nothing to do; "
          "`elasticdl train --resume` goes on with it",
          setting_.job.job_name, job::NameOf(core.state()));
      Show(core.View(), true);
      EndWith(core);
    }
    EDL_RETURN_IF_ERROR(core.Commit());

    const std::string address = (cluster_ != nullptr ? "0.0.0.0:" : "127.0.0.1:") + setting_.port;
    master::ReplicaLauncher launcher(
        backend, setting_.job,
        {.master_address = cluster_ != nullptr ? cluster_->master_address() : address,
         .token_file = setting_.token_file.string(),
         .program = cluster_ != nullptr ? "elasticdl" : ThisProgram(),
         .on_this_machine = cluster_ == nullptr,
         .checkpoint_roots = CheckpointRoots(),
         .master_env = environment});
    master::StatusWriter status(
        [this](const job::JobView& view, bool durable) { Show(view, durable); });
    master::Loop loop(
        core, clock_,
        {.commands =
             [&](std::vector<master::Command> commands) { launcher.Do(std::move(commands)); },
         .server_commands =
             [&](std::vector<master::ServerCommand> commands) {
               if (servers_ != nullptr) servers_->Do(std::move(commands));
             },
         .view = [&](const job::JobView& view) { status.Show(view, /*durable=*/true); },
         // Here the client asks by itself, and the file need not follow every record.
         .progress = cluster_ == nullptr
                         ? nullptr
                         : std::function<void(const job::JobView&)>([&](const job::JobView& view) {
                             status.Show(view, /*durable=*/false);
                           }),
         .fence = cluster_ == nullptr ? nullptr
                                      : std::function<void()>([&] { cluster_->AwaitLedger(); }),
         .scan = [&](std::vector<std::string> replicas) { launcher.Scan(std::move(replicas)); }});
    EDL_ASSIGN_OR_RETURN(const auto server,
                         master::Server::Start(address, setting_.token, setting_.job, core));
    if (setting_.job.own_ps) {
      if (setting_.job.grads_to_wait == 0) {
        LOG_INFO(
            "gradients are applied one by one, and none is refused as stale: synchronous rounds "
            "need --use_async=false and --grads_to_wait of 2 or more");
      }
      servers_ = MakePsController(loop, backend);
    }
    launcher.Start(
        [&](const job::ReplicaEvent& event, std::vector<std::string> last_lines) {
          OnEvent(event);
          loop.Post([event, last_lines = std::move(last_lines)](master::Core& core) {
            core.OnReplicaEvent(event, last_lines);
          });
        },
        [&](const std::string& replica, std::string text) {
          loop.Post(
              [replica, text = std::move(text)](master::Core& core) { core.OnLog(replica, text); });
        });
    if (cluster_ != nullptr) Obey(loop);
    const Status ran = loop.Run(server->queue());
    status.Flush();
    if (!ran.ok()) {
      LOG_ERROR(
          "the ledger cannot be written: {}; the job stops here, nothing is lost: make room "
          "and go on with `elasticdl train --resume`",
          ran.message());
      _exit(kBadConfiguration);
    }
    // So that the file by itself is the whole ledger.
    const Status checkpointed = ledger.Checkpoint();
    if (!checkpointed.ok()) LOG_WARNING("the ledger's log stays: {}", checkpointed.message());
    EndWith(core);
  }

 private:
  [[noreturn]] void EndWith(const master::Core& core) {
    if (cluster_ != nullptr) {
      cluster_->End(core.View().reason, core.state() == job::JobState::kSucceeded);
    }
    // Calls that are still held end with the process: nobody is left to take their answers, and
    // waiting for them would only delay the end.
    _exit(ExitCodeOf(core.state()));
  }

  // Why the master cannot begin: nobody sees its log once its pod is gone.
  void TellCluster(const std::string& reason) {
    if (cluster_ == nullptr) return;
    const job::JobView view{
        .name = setting_.job.job_name, .reason = reason, .version = setting_.job.resume_version};
    cluster_->Show(view);
    cluster_->End(reason, false);
  }

  // Published clients are known by their hosts, which the backend has to tell first; a call that
  // comes sooner waits in the server's queue.
  static constexpr std::chrono::seconds kSyncTimeout{10};

  // Folders that parameter servers may save to and restore from.
  std::vector<std::string> CheckpointRoots() const {
    const std::string& given = setting_.job.checkpoint_dir;
    std::vector<std::string> roots = {std::filesystem::absolute(
        given.empty() ? setting_.folder / "checkpoints" : std::filesystem::path(given))};
    if (const std::string& init = setting_.job.checkpoint_dir_for_init; !init.empty()) {
      roots.push_back(std::filesystem::absolute(init));
    }
    return roots;
  }

  std::unique_ptr<PsController> MakePsController(master::Loop& loop, backend::Backend& backend) {
    const std::filesystem::path given = setting_.job.checkpoint_dir;
    PsController::Answers answers;
    answers.probed = [&loop](uint64_t number, const Result<master::ProbeReply>& reply) {
      loop.Post([number, reply](master::Core& core) {
        core.parameters().OnProbed(number, reply, core.now());
        core.Tick();
      });
    };
    answers.restored = [&loop](uint64_t number, const Status& status) {
      loop.Post([number, status](master::Core& core) {
        core.parameters().OnRestored(number, status, core.now());
      });
    };
    answers.saved = [&loop](uint64_t number, const Status& status) {
      loop.Post([number, status](master::Core& core) {
        core.parameters().OnSaved(number, status, core.now());
        core.Tick();
      });
    };
    answers.state = [&loop](const job::ServerView& view) {
      loop.Post([view](master::Core& core) { core.OnServerState(view); });
    };
    answers.alive = [&loop](int index, uint64_t incarnation) {
      loop.Post([index, incarnation](master::Core& core) {
        core.parameters().OnAlive(index, incarnation, core.now());
      });
    };
    return std::make_unique<PsController>(
        PsController::Options{.servers = setting_.job.num_ps,
                              .token = setting_.token,
                              .folder = given.empty() ? setting_.folder / "checkpoints"
                                                      : given / setting_.job.job_name},
        [&backend](int index) { return backend.AddressOf(job::Role::kPs, index); },
        std::move(answers), clock_);
  }

  // The locks of a master that is gone may live on at a file server for a minute or two.
  Result<master::Ledger> OpenLedger() {
    constexpr std::chrono::seconds kPause{2};
    const Duration timeout = cluster_ != nullptr ? Duration(std::chrono::minutes(5))
                                                 : Duration(std::chrono::seconds(10));
    const Time deadline = clock_.Now() + timeout;
    while (true) {
      Result<master::Ledger> ledger = master::OpenLedger(setting_.folder, setting_.job);
      if (ledger.status().code() != Code::kUnavailable || clock_.Now() >= deadline) return ledger;
      LOG_WARNING("{}; it is tried again", ledger.status().message());
      std::this_thread::sleep_for(kPause);
    }
  }

  // On the status writer's thread.
  void Show(const job::JobView& view, bool durable) {
    const std::string json = view.ToJson();
    if (durable) {
      const Status written = WriteFileAtomically(setting_.folder / "status.json", json);
      if (!written.ok()) LOG_WARNING("{}", written.message());
    }
    if (cluster_ != nullptr) cluster_->Show(view);
  }

  void OnEvent(const job::ReplicaEvent& event) {
    if (cluster_ == nullptr) return;
    cluster_->Note(event);
    if (event.kind != job::ReplicaEvent::Kind::kSynced) return;
    const MutexLock lock(mutex_);
    synced_ = true;
    changed_.NotifyAll();
  }

  void Obey(master::Loop& loop) {
    cluster_->Obey(
        [&](const std::string& reason) {
          loop.Post([reason](master::Core& core) { core.Stop(reason); });
        },
        [&](int workers) {
          loop.Post([workers](master::Core& core) {
            const Status scaled = core.Scale(workers);
            if (!scaled.ok()) LOG_WARNING("{} workers: {}", workers, scaled.message());
          });
        });
    const auto deadline = std::chrono::steady_clock::now() + kSyncTimeout;
    const MutexLock lock(mutex_);
    while (!synced_) {
      if (!changed_.WaitUntil(mutex_, deadline)) break;
    }
    if (!synced_) LOG_WARNING("the API server does not say which pods there are; going on anyway");
  }

  const Setting& setting_;
  const Clock& clock_;
  std::unique_ptr<ClusterMaster> cluster_;  // null: this machine
  std::unique_ptr<PsController> servers_;   // null: parameters are not our business
  Mutex mutex_;
  CondVar changed_;
  bool synced_ GUARDED_BY(mutex_) = false;
};

}  // namespace

int RunMaster(int argc, char** argv) {
  const Result<Setting> setting = ReadSetting(argc, argv);
  if (!setting.ok()) {
    LOG_ERROR("{}", setting.status().message());
    return kBadConfiguration;
  }
  SetLogLevel(setting->job.log_level);
  // A connection a process of the job.
  if (const auto raised = RaiseDescriptorLimit(); !raised.ok()) {
    LOG_WARNING("{}", raised.status().message());
  }
  const SystemClock clock;
  const Status ended = Master(*setting, clock).Run();
  LOG_ERROR("the master cannot start: {}", ended.message());
  return kBadConfiguration;
}

}  // namespace edl::apps
