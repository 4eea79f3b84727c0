#include "base/run_program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

namespace edl {
namespace {

constexpr size_t kMostOutput = size_t{4} << 20;

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

struct Pipe {
  FileDescriptor out;
  FileDescriptor in;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Errno("making a pipe");
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// An anonymous file instead of a pipe, so that writing never waits for the reader.
Result<FileDescriptor> MakeInput(const std::string& text) {
  FileDescriptor file(memfd_create("input", MFD_CLOEXEC));
  if (!file.valid()) return Errno("making a file in memory");
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(file.get(), text.data() + at, text.size() - at);
    if (written < 0 && errno != EINTR) return Errno("writing to a file in memory");
    if (written > 0) at += static_cast<size_t>(written);
  }
  if (lseek(file.get(), 0, SEEK_SET) != 0) return Errno("rewinding a file in memory");
  return file;
}

// Reads both output streams of a program until the program has closed them, and forwards signals
// meanwhile. Reading both at once keeps a full pipe of one from blocking the other.
class OutputReader {
 public:
  OutputReader(const Program& program, pid_t child, ProgramEnd& end)
      : program_(program), child_(child), end_(end) {}

  void ReadToEnd(const FileDescriptor& output, const FileDescriptor& stderr_text) {
    std::array<pollfd, 3> watched = {pollfd{output.get(), POLLIN, 0},
                                     pollfd{stderr_text.get(), POLLIN, 0},
                                     pollfd{program_.signals, POLLIN, 0}};
    while (watched[0].fd >= 0 || watched[1].fd >= 0) {
      const int ready = poll(watched.data(), watched.size(), MillisLeft());
      if (ready < 0) {
        if (errno != EINTR) return;
        continue;
      }
      if (MillisLeft() == 0) Escalate();
      if (watched[0].revents != 0) Read(watched[0].fd, end_.output, OutputStream::kStdout);
      if (watched[1].revents != 0) Read(watched[1].fd, end_.stderr_text, OutputStream::kStderr);
      if (watched[2].revents != 0) ForwardSignal(watched[2].fd);
    }
  }

 private:
  // Sets `fd` to -1 at the end of the stream.
  void Read(int& fd, std::string& text, OutputStream stream) {
    std::array<char, 4096> buffer{};
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) {
      fd = -1;
      return;
    }
    const std::string_view piece(buffer.data(), static_cast<size_t>(got));
    if (program_.on_output) program_.on_output(piece, stream);
    if (text.size() < kMostOutput) text.append(piece);
  }

  void ForwardSignal(int& fd) {
    signalfd_siginfo signal{};
    if (read(fd, &signal, sizeof(signal)) != sizeof(signal)) {
      fd = -1;
      return;
    }
    end_.interrupted_by = static_cast<int>(signal.ssi_signo);
    Send(end_.interrupted_by);
  }

  void Send(int signal) {
    kill(-child_, signal);
    last_ = signal;
    deadline_ = std::chrono::steady_clock::now() + program_.timeout;
  }

  // Sends the next stronger signal. Needed because a signal that arrives while a program starts
  // another one is easily lost.
  void Escalate() { Send(last_ == SIGTERM ? SIGKILL : SIGTERM); }

  // Milliseconds until Escalate; -1: no signal was forwarded.
  int MillisLeft() const {
    if (last_ == 0) return -1;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

  const Program& program_;
  int last_ = 0;  // the last signal that was sent
  std::chrono::steady_clock::time_point deadline_;
  const pid_t child_;
  ProgramEnd& end_;
};

enum class ProcessGroup { kInherited, kOwn };

// How the program is spawned. With a process group of its own, no signal is blocked in it.
class Attributes {
 public:
  explicit Attributes(ProcessGroup group) {
    posix_spawnattr_init(&attributes_);
    // A program expects SIGPIPE to end it, whatever this process does about its own output.
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
    if (group == ProcessGroup::kInherited) return;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace

Result<ProgramEnd> RunProgram(Program program) {
  EDL_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  EDL_ASSIGN_OR_RETURN(Pipe stderr_text, MakePipe());
  FileDescriptor input;
  posix_spawn_file_actions_t actions;
  if (program.input.has_value()) {
    EDL_ASSIGN_OR_RETURN(input, MakeInput(*program.input));
  }
  posix_spawn_file_actions_init(&actions);
  if (input.valid()) posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.in.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, stderr_text.in.get(), STDERR_FILENO);
  pid_t child = 0;
  const Attributes attributes(program.signals >= 0 ? ProcessGroup::kOwn : ProcessGroup::kInherited);
  const int error =
      posix_spawnp(&child, program.command.front().c_str(), &actions, attributes.get(),
                   Pointers(program.command).data(), Pointers(program.environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return StatusFromErrno(error, fmt::format("running {}", program.command.front()));
  }
  output.in.Close();
  stderr_text.in.Close();
  ProgramEnd end;
  OutputReader(program, child, end).ReadToEnd(output.out, stderr_text.out);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

std::optional<std::filesystem::path> FindProgram(std::string_view name, std::string_view path) {
  const auto is_program = [](const std::filesystem::path& file) {
    std::error_code ignored;
    return access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file, ignored);
  };
  if (name.find('/') != std::string_view::npos) {
    return is_program(name) ? std::optional<std::filesystem::path>(name) : std::nullopt;
  }
  while (!path.empty()) {
    const size_t colon = path.find(':');
    const std::filesystem::path file = std::filesystem::path(path.substr(0, colon)) / name;
    if (is_program(file)) return file;
    path.remove_prefix(colon == std::string_view::npos ? path.size() : colon + 1);
  }
  return std::nullopt;
}

}  // namespace edl
