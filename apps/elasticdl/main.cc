#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "reconciler/process/operator_process.h"
#include <fcntl.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "apps/elasticdl/local_jobs.h"
#include "backend/kubernetes/connect_jobs.h"
#include "backend/kubernetes/supervise.h"
#include "base/clock.h"
#include "base/descriptor_limit.h"
#include "base/environment.h"
#include "base/run_program.h"
#include "cli/verbs.h"
#include "master/process/master_process.h"
#include "ps/process/ps_process.h"

namespace edl::apps {
namespace {

namespace fs = std::filesystem;

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

fs::path Home() {
  fs::path home;
  if (IsSet("ELASTICDL_HOME")) {
    home = std::getenv("ELASTICDL_HOME");
  } else if (IsSet("HOME")) {
    home = fs::path(std::getenv("HOME")) / ".elasticdl";
  } else {
    const passwd* user = getpwuid(getuid());
    home = fs::path(user != nullptr ? user->pw_dir : "/") / ".elasticdl";
  }
  std::error_code ignored;
  const fs::path absolute = fs::absolute(home, ignored);
  return (absolute.empty() ? home : absolute).lexically_normal();
}

size_t TerminalColumns() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col : 80;
}

cli::Terminal MakeTerminal() {
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  const char* kind = std::getenv("TERM");
  cli::Terminal terminal;
  terminal.live = is_terminal && kind != nullptr && std::string_view(kind) != "dumb";
  const bool color = terminal.live && !IsSet("NO_COLOR");
  terminal.color = color ? cli::UseColor::kYes : cli::UseColor::kNo;
  terminal.columns = TerminalColumns;
  return terminal;
}

Result<FileDescriptor> CatchSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) return Errno("blocking signals");
  FileDescriptor caught(signalfd(-1, &signals, SFD_CLOEXEC));
  if (!caught.valid()) return Errno("catching signals");
  return caught;
}

Result<ProgramEnd> RunHere(Program program) {
  for (char** entry = environ; *entry != nullptr; ++entry) program.environment.emplace_back(*entry);
  return RunProgram(std::move(program));
}

// Opens /dev/null for each standard stream that is closed. Otherwise the next file that is opened
// would get the number of that stream, and output would be written into the file.
void OpenStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() returns the lowest free number, which is `stream`.
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) (void)!open("/dev/null", O_RDWR);
  }
}

// The number of NVIDIA devices in /dev; -1: /dev cannot be read.
int CountGpus() {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator entry("/dev", error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    constexpr std::string_view kPrefix = "nvidia";
    if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) continue;
    if (name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos) ++count;
  }
  return error ? -1 : count;
}

cli::Machine ThisMachine() {
  return {.memory_bytes = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
          .cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
          .gpus = CountGpus()};
}

fs::path Folder() {
  std::error_code error;
  const fs::path folder = fs::current_path(error);
  return error ? "." : folder;
}

int RunCommandLine(int argc, char** argv) {
  const SystemClock clock;
  cli::Platform platform{.out = std::cout,
                         .err = std::cerr,
                         .clock = clock,
                         .home = Home(),
                         .folder = Folder(),
                         .terminal = MakeTerminal(),
                         .machine = ThisMachine(),
                         .variable = [](const char* name) { return std::getenv(name); },
                         .local = MakeLocalJobs(ThisProgram(argv[0])),
                         .cluster =
                             [&clock](const std::string& ns, cli::ClusterConfig config) {
                               using backend::kubernetes::PodCredentials;
                               return backend::kubernetes::ConnectClusterJobs(
                                   clock, ns,
                                   config == cli::ClusterConfig::kFile ? PodCredentials::kIgnored
                                                                       : PodCredentials::kAllowed);
                             },
                         .cluster_context = backend::kubernetes::ClusterContext,
                         .run = RunHere,
                         .catch_signals = CatchSignals,
                         .read_input = [] { return ReadDescriptor(0, "standard input"); },
                         .ignore_broken_pipes = [] { std::signal(SIGPIPE, SIG_IGN); }};
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return cli::Main(platform, arguments);
}

}  // namespace
}  // namespace edl::apps

int main(int argc, char** argv) {
  edl::apps::OpenStandardStreams();
  const std::string_view verb = argc > 1 ? argv[1] : "";
  // Servers keep a connection for each worker. The master raises the limit itself, to log a
  // failure.
  if (verb == "ps" || verb == "supervise") (void)edl::RaiseDescriptorLimit();
  // Started by the agent of a job, not by users.
  if (verb == "master") {
    return edl::master::RunMaster(argc - 2, argv + 2);
  }
  // Handled here because src/cli links neither the parameter server nor the operator.
  struct Server {
    std::string_view name;
    int (*run)(int argc, char** argv);
  };
  for (const Server& server :
       {Server{"ps", edl::ps::RunPs}, Server{"operator", edl::reconciler::RunOperator}}) {
    if (verb == server.name) return server.run(argc - 2, argv + 2);
    if (verb == "help" && argc == 3 && argv[2] == server.name) {
      std::string help = "--help";
      char* flags[] = {help.data()};
      return server.run(1, flags);
    }
  }
  // Started in the master's pod, not by users.
  if (verb == "supervise") {
    return edl::backend::kubernetes::Supervise(edl::ThisProgram(argv[0]), {argv + 2, argv + argc});
  }
  return edl::apps::RunCommandLine(argc, argv);
}
