#include "apps/elasticdl/ps.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <httplib.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/file.h"
#include "base/flag_help.h"
#include "base/flags.h"
#include "base/log.h"
#include "ps/metrics.h"
#include "ps/server.h"

namespace edl::apps {
namespace {

constexpr int kFailed = 1;
constexpr int kBadFlags = 2;

FlagTable PsFlags() {
  const auto lanes = std::to_string(std::clamp(UsableCpus(), 1U, 16U));
  return FlagTable({
      {.name = "port",
       .type = FlagType::kInt,
       .default_value = "0",
       .group = "Parameter server",
       .help = "TCP port to listen on; 0 picks one and prints it.",
       .at_least = 0,
       .at_most = 65535,
       .common = true},
      {.name = "host",
       .default_value = "127.0.0.1",
       .group = "Parameter server",
       .help = "Address to listen on; empty: all of this machine's.",
       .common = true},
      {.name = "lanes",
       .type = FlagType::kInt,
       .default_value = lanes,
       .group = "Parameter server",
       .help = "Threads, each with its own share of the parameters.",
       .at_least = 1,
       .at_most = 1024,
       .common = true},
      {.name = "index",
       .type = FlagType::kInt,
       .default_value = "0",
       .group = "Parameter server",
       .help = "Which one of the servers this is, from 0.",
       .at_least = 0},
      {.name = "servers",
       .type = FlagType::kInt,
       .default_value = "1",
       .group = "Parameter server",
       .help = "How many servers share the parameters.",
       .at_least = 1},
      {.name = "save_buffer_mb",
       .type = FlagType::kInt,
       .default_value = "256",
       .group = "Parameter server",
       .help = "MiB of a lane's parameters that may wait for the disk during a save; when it is "
               "full, pushes wait.",
       .at_least = 1},
      {.name = "http_port",
       .type = FlagType::kInt,
       .default_value = "-1",
       .group = "Parameter server",
       .help =
           "Port for /metrics, in the form that Prometheus reads, and /healthz; 0 picks one and "
           "prints it; -1: none. With a token, /metrics asks for it as 'Authorization: Bearer "
           "TOKEN'.",
       .at_least = -1,
       .at_most = 65535},
      {.name = "managed",
       .type = FlagType::kSwitch,
       .default_value = "false",
       .group = "Parameter server",
       .help = "Part of a job: serve nobody before the job's master says so."},
      {.name = "leave_secs",
       .type = FlagType::kInt,
       .default_value = "20",
       .group = "Parameter server",
       .help = "Part of a job: how long to wait, after SIGTERM, for the master to save what is "
               "here.",
       .at_least = 0},
      {.name = "token_file",
       .default_value = "",
       .group = "Parameter server",
       .help = "File with the token that callers must know; none: whoever reaches the port is "
               "served.",
       .value_name = "FILE"},
      {.name = "help",
       .type = FlagType::kSwitch,
       .default_value = "false",
       .letter = 'h',
       .hidden = true},
  });
}

Result<ps::ServerOptions> OptionsFrom(const FlagValues& flags) {
  std::random_device random;
  ps::ServerOptions options{
      .host = flags.String("host"),
      .port = static_cast<uint16_t>(flags.Int("port")),
      .lanes = static_cast<size_t>(flags.Int("lanes")),
      .index = static_cast<size_t>(flags.Int("index")),
      .servers = static_cast<size_t>(flags.Int("servers")),
      .incarnation = (uint64_t{random()} << 32) | random(),
      .managed = flags.Bool("managed"),
      .save_buffer_bytes = static_cast<size_t>(flags.Int("save_buffer_mb")) << 20,
  };
  if (const std::string& file = flags.String("token_file"); !file.empty()) {
    EDL_ASSIGN_OR_RETURN(options.token, ReadFile(file));
    while (!options.token.empty() && options.token.back() == '\n') options.token.pop_back();
    if (options.token.empty()) return InvalidArgument("--token_file={} is empty", file);
  }
  return options;
}

// Serves what people and programs watch, until it is destroyed.
class Metrics {
 public:
  // `server` outlives it. Fails when the port cannot be had.
  static Result<std::unique_ptr<Metrics>> Start(ps::Server& server, const std::string& host,
                                                int port, const std::string& token) {
    std::unique_ptr<Metrics> metrics(new Metrics(server, token));
    const std::string address = host.empty() ? "0.0.0.0" : host;
    const bool any = port == 0;
    metrics->port_ = any ? metrics->http_.bind_to_any_port(address) : port;
    if (metrics->port_ < 0 || (!any && !metrics->http_.bind_to_port(address, port))) {
      return Unavailable("port {} of {} cannot be had for --http_port", port, address);
    }
    metrics->thread_ = std::thread([http = &metrics->http_] { http->listen_after_bind(); });
    return metrics;
  }
  ~Metrics() {
    http_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  int port() const { return port_; }

 private:
  Metrics(ps::Server& server, const std::string& token) {
    http_.new_task_queue = [] { return new httplib::ThreadPool(2); };  // NOLINT: it takes it over
    http_.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("ok\n", "text/plain");
    });
    http_.Get(
        "/metrics", [&server, token](const httplib::Request& request, httplib::Response& response) {
          if (!token.empty() && request.get_header_value("Authorization") != "Bearer " + token) {
            response.status = 401;
            response.set_content("this asks for the job's token: Authorization: Bearer TOKEN\n",
                                 "text/plain");
            return;
          }
          response.set_content(ps::MetricsText(server.State()), "text/plain; version=0.0.4");
        });
  }

  httplib::Server http_;
  int port_ = 0;
  std::thread thread_;
};

int Fail(const Status& status, int code) {
  std::cerr << "elasticdl ps: " << status.message() << "\n";
  return code;
}

// So that threads inherit it and one of them can wait for these.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Until the master has saved what the server has, the time is over, or one more signal comes.
void LeaveJob(ps::Server& server, const sigset_t& signals, std::chrono::seconds most) {
  constexpr timespec kLookEvery{.tv_nsec = 20'000'000};
  server.Leave();
  const auto end = std::chrono::steady_clock::now() + most;
  while (!server.IsReleased()) {
    if (std::chrono::steady_clock::now() >= end) {
      LOG_WARNING("the master has not saved what this server has: leaving without");
      return;
    }
    if (sigtimedwait(&signals, nullptr, &kLookEvery) > 0) return;
  }
}

// As who launched it expects of a process that it told to end: it did not end by itself.
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
  const FlagTable table = PsFlags();
  const std::vector<std::string> arguments(argv, argv + argc);
  const Result<FlagValues> flags = ParseFlags(table, arguments);
  if (!flags.ok()) return Fail(flags.status(), kBadFlags);
  if (flags->Bool("help")) {
    std::cout << "Usage: elasticdl ps [--port=N] [--lanes=N] ...\n\n"
                 "Runs a parameter server: rows of embedding tables and dense tensors that\n"
                 "workers pull, push and train. docs/formats/wire.md is what it speaks.\n\n"
              << FlagHelp(table);
    return 0;
  }
  const Result<ps::ServerOptions> options = OptionsFrom(*flags);
  if (!options.ok()) return Fail(options.status(), kBadFlags);
  const sigset_t signals = BlockSignals();
  const SystemClock clock;
  const Result<std::unique_ptr<ps::Server>> server = ps::Server::Start(*options, clock);
  if (!server.ok()) return Fail(server.status(), kFailed);
  std::cout << "elasticdl ps: listening on port " << (*server)->port() << " with " << options->lanes
            << " lanes" << std::endl;  // NOLINT: somebody waits for this line
  std::unique_ptr<Metrics> metrics;
  if (const auto port = static_cast<int>(flags->Int("http_port")); port >= 0) {
    auto started = Metrics::Start(**server, options->host, port, options->token);
    if (!started.ok()) return Fail(started.status(), kFailed);
    metrics = *std::move(started);
    std::cout << "elasticdl ps: metrics on port " << metrics->port() << std::endl;  // NOLINT
  }
  int signal = 0;
  sigwait(&signals, &signal);
  if (!options->managed || signal != SIGTERM) return 0;
  LeaveJob(**server, signals, std::chrono::seconds(flags->Int("leave_secs")));
  metrics.reset();
  EndBySignal(SIGTERM);
  return 0;
}

}  // namespace edl::apps
