#include "backend/local/agent.h"

#include <array>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/exit_cause.h"
#include "backend/local/agent_main.h"
#include "backend/local/agent_protocol.h"
#include "backend/local/sandbox.h"

namespace edl::backend::local {
namespace {

constexpr std::chrono::seconds kStartTimeout{60};
constexpr std::chrono::seconds kAnswerTimeout{10};

// Blocks every signal while it exists, so that the new process inherits neither the handlers nor
// the pending signals of the client.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// Like fork(), with namespaces: returns 0 in the child, and in the parent the child's id and a
// pidfd.
pid_t Clone(const Namespaces& namespaces, int* pidfd) {
  const int flags = namespaces.clone_flags() | CLONE_PIDFD | SIGCHLD;
  return static_cast<pid_t>(syscall(SYS_clone, flags, nullptr, pidfd, nullptr, nullptr));
}

struct Started {
  pid_t process_id = 0;
  FileDescriptor pidfd;
  FileDescriptor lifeline;
};

Result<Started> CloneAgent(const AgentOptions& options, const Namespaces& namespaces) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Errno("making a socket for the agent");
  }
  FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  const Identity identity{.user = geteuid(), .group = getegid()};
  const SignalsBlocked blocked;
  int pidfd = -1;
  const pid_t process_id = Clone(namespaces, &pidfd);
  if (process_id < 0) return Errno("cloning the agent");
  if (process_id == 0) RunAgent(options, namespaces, identity, std::move(theirs));
  fcntl(pidfd, F_SETFD, FD_CLOEXEC);
  return Started{process_id, FileDescriptor(pidfd), std::move(ours)};
}

int Reap(pid_t process_id) {
  int status = 0;
  while (waitpid(process_id, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Returns the next line from the agent. Unavailable: the connection was closed. DeadlineExceeded:
// no line arrived in time.
Result<std::string> ReadLine(int socket, LineReader& reader, std::chrono::milliseconds at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  while (true) {
    if (std::optional<std::string> line = reader.NextLine()) return *std::move(line);
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
    const int polled = poll(&ready, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0)
      return DeadlineExceeded("the agent did not answer within {} ms", at_most.count());
    std::array<char, 4096> buffer;  // NOLINT: filled by recv
    const ssize_t got = recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Unavailable("the agent closed the connection");
    EDL_RETURN_IF_ERROR(reader.Append({buffer.data(), static_cast<size_t>(got)}));
  }
}

// Waits for the agent to report whether it started.
Result<Message> AwaitStart(const Started& started) {
  LineReader reader;
  Result<std::string> line = ReadLine(started.lifeline.get(), reader, kStartTimeout);
  if (!line.ok()) return std::move(line).status().Within("starting the agent");
  return ParseMessage(*line);
}

Status SendOp(int socket, Op op) {
  EDL_ASSIGN_OR_RETURN(const std::string line, Encode(Request{.id = 1, .op = op}));
  return SendAll(socket, line);
}

}  // namespace

Result<AgentHandle> StartAgent(const AgentOptions& given) {
  AgentOptions options = given;
  std::error_code error;
  options.job_dir = std::filesystem::absolute(options.job_dir, error);
  EDL_RETURN_IF_ERROR(CheckVolumes(options.volumes));
  for (const Namespaces& namespaces : NamespacesToTry(options.at_most, options.volumes)) {
    const bool can_fall_back = namespaces.clone_flags() != 0;
    Result<Started> started = CloneAgent(options, namespaces);
    if (!started.ok() && can_fall_back) continue;
    if (!started.ok()) return started.status();
    Result<Message> first = AwaitStart(*started);
    if (first.ok() && first->status.ok()) {
      AgentHandle handle;
      handle.process_id_ = started->process_id;
      handle.pidfd_ = std::move(started->pidfd);
      handle.lifeline_ = std::move(started->lifeline);
      handle.master_address_ = first->address;
      handle.isolation_ = namespaces.pid ? Isolation::kNamespaces : Isolation::kNone;
      return handle;
    }
    // An agent that did not answer is killed.
    if (!first.ok()) kill(started->process_id, SIGKILL);
    Reap(started->process_id);
    if (!first.ok()) return first.status();
    if (!first->isolation || !can_fall_back) return first->status;
  }
  return Internal("no namespaces to start the agent with");
}

Status AgentHandle::Shutdown() {
  const Status sent = SendOp(lifeline_.get(), Op::kShutdown);
  return sent.code() == Code::kUnavailable ? Ok() : sent;  // it has already exited
}

Status AgentHandle::Detach() { return SendOp(lifeline_.get(), Op::kDetach); }

Result<JobEnd> AgentHandle::Wait() {
  // Reads all messages before it waits for the process: an agent whose messages nobody reads could
  // not exit.
  LineReader reader;
  JobEnd end;
  bool received = false;
  while (true) {
    Result<std::string> line =
        ReadLine(lifeline_.get(), reader, std::chrono::hours(24 * 20));  // poll's int holds 24 days
    if (line.status().code() == Code::kDeadlineExceeded) continue;
    if (!line.ok()) break;
    Result<Message> message = ParseMessage(*line);
    if (!message.ok() || message->kind != Message::Kind::kEnd) continue;
    end = std::move(message->end);
    received = true;
  }
  const int status = Reap(process_id_);
  if (WIFSIGNALED(status)) {
    return Unavailable(
        "the agent of the job was killed by {}, and with it every process of the job",
        NameOfSignal(WTERMSIG(status)));
  }
  if (!received) end.exit_code = WEXITSTATUS(status);
  return end;
}

Result<bool> IsAgentRunning(const std::filesystem::path& job_dir) {
  const std::filesystem::path path = job_dir / "agent.lock";
  const FileDescriptor lock(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock.valid()) {
    if (errno == ENOENT) return false;
    return Errno("opening {}", path.string());
  }
  if (flock(lock.get(), LOCK_SH | LOCK_NB) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return Errno("locking {}", path.string());
}

Result<AgentProcess> FindAgent(const std::filesystem::path& job_dir) {
  EDL_ASSIGN_OR_RETURN(const bool running, IsAgentRunning(job_dir));
  if (!running) return NotFound("no agent is running for the job in {}", job_dir.string());
  EDL_ASSIGN_OR_RETURN(const std::string id, ReadFile(job_dir / "agent.lock"));
  AgentProcess agent{.process_id = static_cast<pid_t>(std::atoi(id.c_str()))};
  if (agent.process_id <= 0)
    return NotFound("{}/agent.lock does not contain a process id", job_dir.string());
  EDL_ASSIGN_OR_RETURN(const std::string stat,
                       ReadFile(fmt::format("/proc/{}/stat", agent.process_id)));
  // Format: "pid (command) state ...". The command may contain any character.
  const size_t bracket = stat.rfind(')');
  const char state = bracket + 2 < stat.size() ? stat[bracket + 2] : '?';
  agent.stopped = state == 'T' || state == 't';
  return agent;
}

Status ShutdownAgent(const std::filesystem::path& job_dir) {
  EDL_ASSIGN_OR_RETURN(const FileDescriptor connection, ConnectToAgent(job_dir));
  EDL_RETURN_IF_ERROR(SendOp(connection.get(), Op::kShutdown));
  LineReader reader;
  Result<std::string> line = ReadLine(connection.get(), reader, kAnswerTimeout);
  if (!line.ok()) {
    return std::move(line).status().Within(
        fmt::format("shutting down the job in {}", job_dir.string()));
  }
  EDL_ASSIGN_OR_RETURN(const Message reply, ParseMessage(*line));
  return reply.status;
}

}  // namespace edl::backend::local
