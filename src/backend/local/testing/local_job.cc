#include "backend/local/testing/local_job.h"

#include <array>
#include <charconv>
#include <csignal>

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/log_file.h"

namespace edl::backend::local {
namespace {

namespace fs = std::filesystem;

constexpr int kTimeoutMs =
    static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kTimeout).count());

FileDescriptor OpenPidfd(pid_t process) {
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

bool AwaitReadable(int fd) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&ready, 1, kTimeoutMs) == 1;
}

Status StillRuns(pid_t process) {
  return DeadlineExceeded("process {} still runs after {} s", process, kTimeout.count());
}

}  // namespace

std::vector<std::string> Shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

LocalJob::LocalJob() {
  fs::create_directory(job_dir());
  fs::permissions(job_dir(), fs::perms(0700));
  options_.job_dir = job_dir();
  options_.master_command = Shell("exec sleep 1000");
}

LocalJob::~LocalJob() {
  (void)ShutdownAgent(job_dir());  // usually it has already noticed the end of its handle
  const FileDescriptor lock(open((job_dir() / "agent.lock").c_str(), O_RDONLY | O_CLOEXEC));
  if (lock.valid()) flock(lock.get(), LOCK_EX);
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

std::string LocalJob::ReadLogOf(const std::string& name) const {
  const auto piece = ReadLog(job_dir() / "logs", name, 0, int64_t{1} << 20);
  return piece.ok() ? piece->text : piece.status().ToString();
}

Signpost::Signpost(const fs::path& path) : path_(path) {
  CHECK(mkfifo(path.c_str(), 0600) == 0, "mkfifo {}", path.string());
  pipe_ = FileDescriptor(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

std::string Signpost::Pass(const std::string& word) const {
  return fmt::format("echo {} > {}", word, path_.string());
}

std::string Signpost::Await() {
  while (read_.find('\n') == std::string::npos) {
    std::array<char, 256> buffer{};
    if (!AwaitReadable(pipe_.get())) {
      ADD_FAILURE() << "nothing was written to " << path_ << " within " << kTimeout.count() << " s";
      return "";
    }
    const ssize_t got = read(pipe_.get(), buffer.data(), buffer.size());
    if (got > 0) read_.append(buffer.data(), static_cast<size_t>(got));
  }
  const size_t end = read_.find('\n');
  std::string word = read_.substr(0, end);
  read_.erase(0, end + 1);
  return word;
}

std::string UniqueWord() {
  static int count = 0;  // NOLINT: only makes names unique
  return fmt::format("edlword_{}_{}_x", getpid(), count++);
}

Processes Processes::With(const std::string& word) {
  Processes found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    pid_t id = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), id).ptr !=
        name.data() + name.size()) {
      continue;
    }
    FileDescriptor pidfd = OpenPidfd(id);
    const Result<std::string> command = ReadFile(entry.path() / "cmdline");
    if (!pidfd.valid() || !command.ok() || command->find(word) == std::string::npos) continue;
    found.processes_.push_back({id, std::move(pidfd)});
  }
  return found;
}

Status Processes::AwaitEnd() const {
  for (const Process& process : processes_) {
    if (!AwaitReadable(process.pidfd.get())) return StillRuns(process.id);
  }
  return Ok();
}

void Processes::Kill(int signal) const {
  for (const Process& process : processes_) {
    syscall(SYS_pidfd_send_signal, process.pidfd.get(), signal, nullptr, 0);
  }
}

Status AwaitEndOf(pid_t process) {
  const FileDescriptor pidfd = OpenPidfd(process);
  return !pidfd.valid() || AwaitReadable(pidfd.get()) ? Ok() : StillRuns(process);
}

std::string InChild(const std::function<std::string()>& body, std::optional<uid_t> user) {
  std::array<int, 2> ends{};
  CHECK(pipe2(ends.data(), O_CLOEXEC) == 0, "pipe");
  FileDescriptor result(ends[0]);
  FileDescriptor theirs(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    if (user.has_value()) {
      CHECK(setgroups(0, nullptr) == 0 && setgid(*user) == 0 && setuid(*user) == 0, "setuid");
      prctl(PR_SET_DUMPABLE, 1);  // as after exec: /proc/self belongs to the user
    }
    const std::string text = body();
    (void)!write(theirs.get(), text.data(), text.size());
    _exit(0);
  }
  theirs.Close();
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = read(result.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) text += " (the child died)";
  return text;
}

Client::Client(const AgentOptions& options) {
  std::array<int, 2> ends{};
  CHECK(pipe2(ends.data(), O_CLOEXEC) == 0, "pipe");
  const FileDescriptor result(ends[0]);
  FileDescriptor theirs(ends[1]);
  client_ = fork();
  if (client_ == 0) {
    Result<AgentHandle> agent = StartAgent(options);
    const pid_t id = agent.ok() ? agent->process_id() : 0;
    if (!agent.ok()) fmt::print(stderr, "StartAgent: {}\n", agent.status().ToString());
    (void)!write(theirs.get(), &id, sizeof(id));
    while (true) pause();
  }
  theirs.Close();
  (void)!read(result.get(), &agent_, sizeof(agent_));
}

void Client::Kill() {
  if (client_ == 0) return;
  kill(client_, SIGKILL);
  waitpid(client_, nullptr, 0);
  client_ = 0;
}

Client::~Client() { Kill(); }

}  // namespace edl::backend::local
