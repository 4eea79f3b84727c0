#include "base/run_program.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
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

// A file of no name, so that writing never waits for the reader.
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

// Reads both ends until both are closed, so that neither blocks the other.
void Drain(const FileDescriptor& first, std::string& first_text, const FileDescriptor& second,
           std::string& second_text) {
  std::array<pollfd, 2> watched = {pollfd{first.get(), POLLIN, 0}, pollfd{second.get(), POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&first_text, &second_text};
  std::array<char, 4096> buffer{};
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    for (size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      const ssize_t got = read(watched[i].fd, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        watched[i].fd = -1;
      } else if (texts[i]->size() < kMostOutput) {
        texts[i]->append(buffer.data(), static_cast<size_t>(got));
      }
    }
  }
}

}  // namespace

Result<ProgramEnd> RunProgram(Program program) {
  EDL_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  EDL_ASSIGN_OR_RETURN(Pipe complaints, MakePipe());
  FileDescriptor input;
  posix_spawn_file_actions_t actions;
  if (program.input.has_value()) {
    EDL_ASSIGN_OR_RETURN(input, MakeInput(*program.input));
  }
  posix_spawn_file_actions_init(&actions);
  if (input.valid()) posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.in.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, complaints.in.get(), STDERR_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, program.command.front().c_str(), &actions, nullptr,
                   Pointers(program.command).data(), Pointers(program.environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return StatusFromErrno(error, fmt::format("running {}", program.command.front()));
  }
  output.in.Close();
  complaints.in.Close();
  ProgramEnd end;
  Drain(output.out, end.output, complaints.out, end.complaints);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace edl
