#include "backend/local/agent_main.h"

#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/agent_protocol.h"
#include "backend/local/agent_server.h"
#include "backend/local/own_process.h"
#include "backend/local/port_pool.h"
#include "backend/local/process_tree.h"
#include "backend/local/replica_process.h"
#include "backend/local/supervisor.h"
#include "base/event_loop.h"
#include "base/json.h"
#include "base/log.h"

namespace edl::backend::local {
namespace {

constexpr int kFailedCode = 1;

// The state of the agent. Confined.
class Agent {
 public:
  explicit Agent(const AgentOptions& options) : options_(options) {}

  // Does everything up to a running master. After a failure the caller ends the started processes.
  Status Start(FileDescriptor outer_proc);
  // Takes ownership of the connection to the client, and serves until the job has ended.
  JobEnd Serve(FileDescriptor lifeline);
  const std::string& master_address() const { return master_address_; }

 private:
  Status OpenJobFolder();
  Status TakeLock();
  Status OpenLog();
  Status WatchSignals();
  Status StartMaster();
  void OnSignals();
  void RotateOwnLog();
  void WriteEnd(const JobEnd& end) const;
  std::filesystem::path OwnLog() const { return options_.job_dir / "logs" / "agent.log"; }

  const AgentOptions& options_;
  const SystemClock clock_;
  FileDescriptor outer_proc_;
  FileDescriptor job_dir_;
  FileDescriptor lock_;
  FileDescriptor signals_;
  std::unique_ptr<EventLoop> loop_;
  std::optional<Supervisor> supervisor_;
  std::optional<AgentServer> server_;
  std::string master_address_;
};

Status Agent::OpenJobFolder() {
  const std::string path = options_.job_dir.string();
  job_dir_ = FileDescriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!job_dir_.valid()) return Errno("opening the job folder {}", path);
  struct stat status {};
  if (fstat(job_dir_.get(), &status) != 0) return Errno("reading the metadata of {}", path);
  if (status.st_uid != geteuid()) {
    return PermissionDenied("the job folder {} belongs to another user; use a folder of your own",
                            path);
  }
  if ((status.st_mode & 077) != 0 && fchmod(job_dir_.get(), 0700) != 0) {
    return Errno("removing the permissions of other users on {}", path);
  }
  return Ok();
}

Status Agent::TakeLock() {
  lock_ = FileDescriptor(openat(job_dir_.get(), "agent.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_.valid()) return Errno("opening {}/agent.lock", options_.job_dir.string());
  // A process that only checks whether the job runs holds the lock for a moment.
  constexpr int kTries = 20;
  for (int tried = 0; flock(lock_.get(), LOCK_EX | LOCK_NB) != 0; ++tried) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Errno("locking agent.lock");
    if (tried == kTries) {
      return AlreadyExists("the job in {} is already running: its agent holds agent.lock",
                           options_.job_dir.string());
    }
    usleep(10'000);
  }
  const std::string id = std::to_string(ProcessIdIn(outer_proc_.get())) + "\n";
  if (ftruncate(lock_.get(), 0) != 0 || pwrite(lock_.get(), id.data(), id.size(), 0) < 0) {
    return Errno("writing {}/agent.lock", options_.job_dir.string());
  }
  return Ok();
}

Status Agent::OpenLog() {
  if (mkdirat(job_dir_.get(), "logs", 0700) != 0 && errno != EEXIST) {
    return Errno("making {}/logs", options_.job_dir.string());
  }
  const FileDescriptor log(open(OwnLog().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) return Errno("opening {}", OwnLog().string());
  const FileDescriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.valid()) return Errno("opening /dev/null");
  dup2(null.get(), STDIN_FILENO);
  dup2(log.get(), STDOUT_FILENO);
  dup2(log.get(), STDERR_FILENO);
  return Ok();
}

void Agent::RotateOwnLog() {
  struct stat status {};
  if (fstat(STDERR_FILENO, &status) != 0 || status.st_size < options_.log_limit_bytes) return;
  rename(OwnLog().c_str(), (OwnLog().string() + ".1").c_str());
  const Status reopened = OpenLog();
  if (!reopened.ok()) LOG_ERROR("{}", reopened.message());
}

Status Agent::WatchSignals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&watched, signal);
  signals_ = FileDescriptor(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return Errno("making a signalfd");
  return loop_->Add(signals_.get(), POLLIN, [this] { OnSignals(); });
}

void Agent::OnSignals() {
  signalfd_siginfo signal{};
  while (read(signals_.get(), &signal, sizeof(signal)) == static_cast<ssize_t>(sizeof(signal))) {
    if (signal.ssi_signo == SIGCHLD) {
      supervisor_->Reap();
    } else {
      supervisor_->Shutdown("the agent received a signal to end");
    }
  }
}

Status Agent::StartMaster() {
  EDL_ASSIGN_OR_RETURN(master_address_, supervisor_->ReserveMasterAddress());
  EDL_RETURN_IF_ERROR(server_->Listen(job_dir_.get()).Within("in " + options_.job_dir.string()));
  Status started = supervisor_->StartMaster();
  if (!started.ok()) unlinkat(job_dir_.get(), "agent.sock", 0);
  return started;
}

Status Agent::Start(FileDescriptor outer_proc) {
  outer_proc_ = std::move(outer_proc);
  EDL_RETURN_IF_ERROR(OpenJobFolder());
  EDL_RETURN_IF_ERROR(TakeLock());
  EDL_RETURN_IF_ERROR(OpenLog());
  unlinkat(job_dir_.get(), "end.json", 0);  // of the previous run
  rlimit open_files{};
  getrlimit(RLIMIT_NOFILE, &open_files);
  const rlimit raised{.rlim_cur = open_files.rlim_max, .rlim_max = open_files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
  EDL_ASSIGN_OR_RETURN(loop_, EventLoop::Make(clock_));
  const std::string id = std::to_string(ProcessIdIn(outer_proc_.get()));
  const auto seed = static_cast<uint32_t>(std::hash<std::string>()(options_.job_dir.string() + id));
  supervisor_.emplace(*loop_, clock_, options_,
                      Environment{.outer_proc = outer_proc_.get(),
                                  .open_files = open_files,
                                  .agent_name = "elasticdl-" + id},
                      PortPool(EphemeralPorts(), seed));
  server_.emplace(*loop_, *supervisor_,
                  options_.detach ? Attachment::kDetached : Attachment::kAttached);
  EDL_RETURN_IF_ERROR(WatchSignals());
  return StartMaster();
}

// Records why the job ended, for later questions: the client may have exited.
void Agent::WriteEnd(const JobEnd& end) const {
  const nlohmann::json out = {{"exit_code", end.exit_code}, {"reason", end.reason}};
  const Status written = WriteFileAtomically(options_.job_dir / "end.json", Dump(out));
  if (!written.ok()) LOG_WARNING("{}", written.message());
}

JobEnd Agent::Serve(FileDescriptor lifeline) {
  const Status held = server_->Hold(std::move(lifeline));
  if (!held.ok())
    supervisor_->Shutdown("cannot watch the connection to the client: " + held.message());
  while (!supervisor_->end().has_value()) {
    loop_->RunOnce();
    RotateOwnLog();
  }
  JobEnd end = *supervisor_->end();
  EndDescendants();
  WriteEnd(end);
  unlinkat(job_dir_.get(), "agent.sock", 0);
  LOG_INFO("the job ended with exit code {}", end.exit_code);
  server_->SendEnd(end);
  server_.reset();
  supervisor_.reset();
  return end;
}

void Reply(const FileDescriptor& lifeline, const Message& message) {
  // If the client has already exited, the end of the lifeline shows it.
  (void)SendAll(lifeline.get(), Encode(message));
}

}  // namespace

void RunAgent(const AgentOptions& options, const Namespaces& namespaces, Identity identity,
              FileDescriptor lifeline) {
  int socket = lifeline.Release();
  KeepOnly({&socket});
  lifeline = FileDescriptor(socket);
  ResetSignals();
  setsid();  // the client decides what Ctrl-C on the terminal does
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, "edl-agent");
  FileDescriptor outer_proc(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Status status = EnterNamespaces(namespaces, identity);
  if (!status.ok()) {
    Reply(lifeline, {.status = status, .isolation = true});
    _exit(kFailedCode);
  }
  status = MountVolumes(options.volumes,
                        namespaces.mount ? MountAccess::kOwnNamespace : MountAccess::kNone);
  Agent agent(options);
  if (status.ok()) status = agent.Start(std::move(outer_proc));
  if (!status.ok()) {
    Reply(lifeline, {.status = status});
    EndDescendants();
    _exit(kFailedCode);
  }
  Reply(lifeline, {.address = agent.master_address()});
  _exit(agent.Serve(std::move(lifeline)).exit_code);
}

}  // namespace edl::backend::local
