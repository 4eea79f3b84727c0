#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/log_file.h"
#include "backend/local/own_process.h"
#include "backend/local/process_tree.h"
#include "backend/local/replica_process.h"
#include "base/log.h"

namespace edl::backend::local {
namespace {

using SteadyClock = std::chrono::steady_clock;  // a separate process, with no clock to inject

// A message from the child to the shim before exec. End of file instead of an error means that exec
// succeeded.
struct StartNote {
  int32_t error = 0;
  int32_t in_cgroup = 0;
  int64_t process_id = 0;
};

bool EnterCgroup(const std::filesystem::path& cgroup) {
  const FileDescriptor file(open((cgroup / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  return file.valid() && write(file.get(), "0", 1) == 1;
}

void UnblockSignals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the forked child: executes the program, or reports why it cannot.
[[noreturn]] void Become(const ProcessSpec& spec, pid_t shim, int output, int note_pipe) {
  setsid();  // away from the terminal: the client handles Ctrl-C
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != shim) _exit(127);
  StartNote note{.process_id = ProcessIdIn(spec.outer_proc)};
  if (!spec.cgroup.empty()) note.in_cgroup = EnterCgroup(spec.cgroup) ? 1 : 0;
  (void)!write(note_pipe, &note, sizeof(note));

  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (null > STDERR_FILENO) close(null);
  setrlimit(RLIMIT_NOFILE, &spec.open_files);
  for (const auto& [name, value] : spec.env) setenv(name.c_str(), value.c_str(), 1);
  if (!spec.process_id_variable.empty()) {
    setenv(spec.process_id_variable.c_str(), std::to_string(note.process_id).c_str(), 1);
  }
  std::vector<char*> arguments;
  for (const std::string& argument : spec.command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  ResetSignals();
  UnblockSignals();
  execvp(arguments[0], arguments.data());
  note.error = errno;
  (void)!write(note_pipe, &note, sizeof(note));
  _exit(127);
}

class Shim {
 public:
  Shim(const ProcessSpec& spec, FileDescriptor agent, LogFile log)
      : spec_(spec), agent_(std::move(agent)), log_(std::move(log)) {}

  // Starts the program. Returns false if that failed, after reporting it.
  bool Start();
  // Serves until the program and all processes that it left have ended, then reports the exit.
  void Serve();
  void ReportNotStarted(int error, const char* what);

 private:
  void Report(const ShimReport& report) const {
    (void)send(agent_.get(), &report, sizeof(report), MSG_NOSIGNAL);
  }
  void HandleStopRequest();
  bool CopyOutput();
  bool Reap();
  int MillisecondsToKill() const;

  const ProcessSpec& spec_;
  FileDescriptor agent_;
  LogFile log_;
  FileDescriptor output_;  // read end of the program's output
  FileDescriptor signals_;
  pid_t program_ = 0;
  int wait_status_ = 0;
  bool agent_exited_ = false;
  std::optional<SteadyClock::time_point> kill_at_;
};

void Shim::ReportNotStarted(int error, const char* what) {
  log_.Append(fmt::format("elasticdl: cannot start '{}': {}: {}\n",
                          spec_.command.empty() ? "" : spec_.command[0], what,
                          std::strerror(error)));
  Report({.kind = ShimReport::Kind::kNotStarted, .error = error});
}

bool Shim::Start() {
  std::array<int, 2> output{};
  std::array<int, 2> note_pipe{};
  if (pipe2(output.data(), O_CLOEXEC) != 0 || pipe2(note_pipe.data(), O_CLOEXEC) != 0) {
    return ReportNotStarted(errno, "making a pipe"), false;
  }
  output_ = FileDescriptor(output[0]);
  FileDescriptor output_end(output[1]);
  const FileDescriptor note_reader(note_pipe[0]);
  FileDescriptor note_writer(note_pipe[1]);
  fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  fcntl(output_.get(), F_SETPIPE_SZ, 1 << 20);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  signals_ = FileDescriptor(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return ReportNotStarted(errno, "making a signalfd"), false;

  const pid_t shim = getpid();
  program_ = fork();
  if (program_ < 0) return ReportNotStarted(errno, "forking"), false;
  if (program_ == 0) Become(spec_, shim, output_end.get(), note_writer.get());
  output_end.Close();
  note_writer.Close();
  StartNote note;
  StartNote last;
  while (read(note_reader.get(), &note, sizeof(note)) == static_cast<ssize_t>(sizeof(note))) {
    last = note;
  }
  if (last.error != 0) {
    while (waitpid(program_, nullptr, 0) < 0 && errno == EINTR) {
    }
    return ReportNotStarted(last.error, "exec"), false;
  }
  Report({.kind = ShimReport::Kind::kStarted,
          .in_cgroup = last.in_cgroup,
          .process_id = last.process_id});
  return true;
}

int Shim::MillisecondsToKill() const {
  if (!kill_at_.has_value()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - SteadyClock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX));
}

void Shim::HandleStopRequest() {
  StopRequest request;
  const ssize_t got = recv(agent_.get(), &request, sizeof(request), MSG_DONTWAIT);
  if (got == static_cast<ssize_t>(sizeof(request))) {
    kill(-program_, SIGTERM);
    const auto at = SteadyClock::now() + std::chrono::milliseconds(request.grace_ms);
    kill_at_ = std::min(kill_at_.value_or(at), at);
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    agent_exited_ = true;
  }
}

// Returns false when every writer has closed the pipe.
bool Shim::CopyOutput() {
  std::array<char, 65536> buffer;  // NOLINT: filled by read
  // Bounded, so that a program that writes continuously cannot keep the shim from handling
  // requests.
  for (int round = 0; round < 64; ++round) {
    const ssize_t got = read(output_.get(), buffer.data(), buffer.size());
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    log_.Append({buffer.data(), static_cast<size_t>(got)});
  }
  return true;
}

// Returns true when the program has ended. Also reaps orphans.
bool Shim::Reap() {
  signalfd_siginfo ignored{};
  while (read(signals_.get(), &ignored, sizeof(ignored)) > 0) {
  }
  bool ended = false;
  int status = 0;
  for (pid_t child = 0; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (child != program_) continue;
    ended = true;
    wait_status_ = status;
  }
  return ended;
}

void Shim::Serve() {
  std::array<pollfd, 3> polled = {{{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = agent_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = output_.get(), .events = POLLIN, .revents = 0}}};
  while (true) {
    if (poll(polled.data(), polled.size(), MillisecondsToKill()) < 0 && errno != EINTR) break;
    if (polled[0].revents != 0 && Reap()) break;
    if (polled[1].revents != 0) HandleStopRequest();
    if (agent_exited_ || MillisecondsToKill() == 0) {
      kill(-program_, SIGKILL);
      kill(program_, SIGKILL);
      kill_at_.reset();
      if (agent_exited_) polled[1].fd = -1;
    }
    if (polled[2].revents != 0 && !CopyOutput()) polled[2].fd = -1;
  }
  EndDescendants();
  for (int round = 0; round < 1024 && polled[2].fd >= 0; ++round) {
    pollfd rest = polled[2];
    if (poll(&rest, 1, 0) <= 0 || !CopyOutput()) break;
  }
  Report({.kind = ShimReport::Kind::kExited, .wait_status = wait_status_});
}

}  // namespace

void RunShim(const ProcessSpec& spec, FileDescriptor agent) {
  ProcessSpec kept = spec;
  int socket = agent.Release();
  KeepOnly({&socket, &kept.outer_proc});
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, "edl-shim");
  FileDescriptor to_agent(socket);
  Result<LogFile> log = LogFile::Open(kept.log_dir, kept.log_name, kept.log_limit_bytes);
  if (!log.ok()) {
    LOG_ERROR("cannot start {}: {}", kept.log_name, log.status().message());
    const ShimReport report{.kind = ShimReport::Kind::kNotStarted, .error = EIO};
    (void)send(to_agent.get(), &report, sizeof(report), MSG_NOSIGNAL);
    _exit(1);
  }
  Shim shim(kept, std::move(to_agent), std::move(*log));
  if (shim.Start()) shim.Serve();
  _exit(0);
}

}  // namespace edl::backend::local
