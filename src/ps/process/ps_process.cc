#include "ps/process/ps_process.h"

#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <thread>

#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor_limit.h"
#include "base/flag_help.h"
#include "base/log.h"
#include "ps/parameter_server.h"
#include "ps/process/metrics_server.h"
#include "ps/process/ps_flags.h"

namespace edl::ps {
namespace {

constexpr int kFailed = 1;
constexpr int kBadFlags = 2;
// How long the process waits for running saves and restores after a signal. Storage that does not
// answer would block it forever.
constexpr std::chrono::seconds kEndTimeout{5};

int Fail(const Status& status, int code) {
  std::cerr << "elasticdl ps: " << status.message() << "\n";
  return code;
}

// Exits if the process is still running after that time: a thread that waits for storage may never
// return.
void EndWithin(std::chrono::seconds most, int code) {
  std::thread([most, code] {
    std::this_thread::sleep_for(most);
    LOG_WARNING("a save or restore has not ended within {} s: exiting without it", most.count());
    _exit(code);
  }).detach();
}

// Blocks the signals in all threads that are started later, so that sigwait() gets them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Waits until the master has saved this server, the time is over, or another signal arrives.
void LeaveJob(ParameterServer& server, const sigset_t& signals, std::chrono::seconds most) {
  constexpr timespec kLookEvery{.tv_nsec = 20'000'000};
  server.Leave();
  const auto end = std::chrono::steady_clock::now() + most;
  while (!server.IsReleased()) {
    if (std::chrono::steady_clock::now() >= end) {
      LOG_WARNING("the master has not saved this server within {} s: exiting without",
                  most.count());
      return;
    }
    if (sigtimedwait(&signals, nullptr, &kLookEvery) > 0) return;
  }
}

// Ends with the status of a process that was killed by the signal, which the launcher expects.
void EndBySignal(int signal) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  std::signal(signal, SIG_DFL);
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
}

}  // namespace

int RunPs(int argc, char** argv) {
  const Result<PsConfig> config = ParsePsFlags({argv, argv + argc});
  if (!config.ok()) return Fail(config.status(), kBadFlags);
  if (config->help) {
    std::cout << "Usage: elasticdl ps [--port=N] [--lanes=N] ...\n\n"
                 "Runs a parameter server: it holds rows of embedding tables and dense tensors,\n"
                 "which workers pull and train. Its protocol is docs/formats/wire.md.\n\n"
              << FlagHelp(PsFlags());
    return 0;
  }
  const ServerOptions& options = config->server;
  // Each worker has a connection to each lane, and the usual limit is 1,024 descriptors.
  if (const auto raised = RaiseDescriptorLimit(); !raised.ok()) {
    LOG_WARNING("{}", raised.status().message());
  }
  const sigset_t signals = BlockSignals();
  const SystemClock clock;
  const Result<std::unique_ptr<ParameterServer>> server = ParameterServer::Start(options, clock);
  if (!server.ok()) return Fail(server.status(), kFailed);
  std::cout << "elasticdl ps: listening on port " << (*server)->port() << " with " << options.lanes
            << " lanes" << std::endl;  // NOLINT: a caller waits for this line
  std::unique_ptr<http::PageServer> metrics;
  if (config->http_port >= 0) {
    auto started = StartMetricsServer(
        **server, options.host, config->http_port,
        config->metrics_without_token ? "" : options.token,
        {{"job_name", config->job_name}, {"index", std::to_string(options.index)}});
    if (!started.ok()) return Fail(started.status(), kFailed);
    metrics = *std::move(started);
    std::cout << "elasticdl ps: metrics on port " << metrics->port() << std::endl;  // NOLINT
  }
  int signal = 0;
  sigwait(&signals, &signal);
  if (!options.managed || signal != SIGTERM) {
    EndWithin(kEndTimeout, 0);
    return 0;
  }
  EndWithin(config->leave_timeout + kEndTimeout, kFailed);
  LeaveJob(**server, signals, config->leave_timeout);
  metrics.reset();
  EndBySignal(SIGTERM);
  return 0;
}

}  // namespace edl::ps
