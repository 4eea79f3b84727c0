#include "apps/elasticdl/ps.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <httplib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/file.h"
#include "base/flag_help.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/mutex.h"
#include "ps/metrics.h"
#include "ps/server.h"

namespace edl::apps {
namespace {

constexpr int kFailed = 1;
constexpr int kBadFlags = 2;
constexpr std::string_view kRootFlag = "checkpoint_root";
// For what is under way when the process is told to end. Storage that does not answer has no more.
constexpr std::chrono::seconds kEndTimeout{5};
// Connections to the HTTP port, each with a thread while its request is read and answered.
constexpr size_t kMostRequests = 64;
constexpr std::chrono::seconds kRequestTimeout{5};

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
       .help = "MiB of parameters that may wait for the disk during a save, of all lanes together; "
               "when it is full, pushes wait.",
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
      {.name = std::string(kRootFlag),
       .default_value = "",
       .group = "Parameter server",
       .help = "Folder below which callers may save and restore checkpoints; may be given several "
               "times. Without it: anywhere if there is a token, nowhere if there is none.",
       .value_name = "DIR"},
      {.name = "insecure",
       .type = FlagType::kSwitch,
       .default_value = "false",
       .group = "Parameter server",
       .help = "Listen beyond this machine without a token: whoever reaches the port can read and "
               "change all parameters."},
      {.name = "help",
       .type = FlagType::kSwitch,
       .default_value = "false",
       .letter = 'h',
       .hidden = true},
  });
}

// Takes the flag that may be given several times out of the arguments.
Result<std::vector<std::filesystem::path>> TakeRoots(std::vector<std::string>& arguments) {
  const std::string flag = fmt::format("--{}", kRootFlag);
  std::vector<std::filesystem::path> roots;
  std::vector<std::string> others;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string value;
    if (arguments[i] == flag) {
      value = i + 1 < arguments.size() ? arguments[++i] : "";
    } else if (arguments[i].starts_with(flag + "=")) {
      value = arguments[i].substr(flag.size() + 1);
    } else {
      others.push_back(arguments[i]);
      continue;
    }
    if (value.empty()) return InvalidArgument("{} needs a folder", flag);
    roots.emplace_back(value);
  }
  arguments = std::move(others);
  return roots;
}

bool IsLoopback(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  if (inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return host == "localhost";
}

// Each worker has a connection to each lane, and the usual limit is 1,024.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) LOG_WARNING("the limit of open files stays as it is");
}

Result<ps::ServerOptions> OptionsFrom(const FlagValues& flags) {
  if (!flags.arguments().empty()) {
    return InvalidArgument("'{}' is no flag, and there are only flags", flags.arguments().front());
  }
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
  if (options.token.empty() && !IsLoopback(options.host) && !flags.Bool("insecure")) {
    return InvalidArgument(
        "--host={} lets other machines in, and there is no token: give --token_file=FILE, or "
        "--insecure if everyone who reaches the port may read and change the parameters",
        options.host);
  }
  return options;
}

// A thread for each connection, so that a request that never ends does not hold up the others.
// Above the bound connections wait. Thread-safe.
class ThreadPerConnection final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> serve) override {
    const MutexLock lock(mutex_);
    while (running_ >= kMostRequests) changed_.Wait(mutex_);
    ++running_;
    std::thread([this, serve = std::move(serve)] {
      serve();
      const MutexLock ended(mutex_);
      --running_;
      changed_.NotifyAll();
    }).detach();
  }
  void shutdown() override {
    const MutexLock lock(mutex_);
    while (running_ > 0) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  size_t running_ GUARDED_BY(mutex_) = 0;
};

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
    http_.new_task_queue = [] { return new ThreadPerConnection; };  // NOLINT: it takes it over
    http_.set_read_timeout(kRequestTimeout);
    http_.set_write_timeout(kRequestTimeout);
    http_.set_keep_alive_max_count(1);
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

// Ends the process by itself if it has not ended by then: a thread that waits for storage may never
// come back.
void EndWithin(std::chrono::seconds most, int code) {
  std::thread([most, code] {
    std::this_thread::sleep_for(most);
    LOG_WARNING("what is under way does not end: leaving without it");
    _exit(code);
  }).detach();
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
  std::vector<std::string> arguments(argv, argv + argc);
  Result<std::vector<std::filesystem::path>> roots = TakeRoots(arguments);
  if (!roots.ok()) return Fail(roots.status(), kBadFlags);
  const Result<FlagValues> flags = ParseFlags(table, arguments);
  if (!flags.ok()) return Fail(flags.status(), kBadFlags);
  if (flags->Bool("help")) {
    std::cout << "Usage: elasticdl ps [--port=N] [--lanes=N] ...\n\n"
                 "Runs a parameter server: rows of embedding tables and dense tensors that\n"
                 "workers pull, push and train. docs/formats/wire.md is what it speaks.\n\n"
              << FlagHelp(table);
    return 0;
  }
  Result<ps::ServerOptions> options = OptionsFrom(*flags);
  if (!options.ok()) return Fail(options.status(), kBadFlags);
  options->checkpoint_roots = *std::move(roots);
  RaiseDescriptorLimit();
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
  if (!options->managed || signal != SIGTERM) {
    EndWithin(kEndTimeout, 0);
    return 0;
  }
  EndWithin(std::chrono::seconds(flags->Int("leave_secs")) + kEndTimeout, kFailed);
  LeaveJob(**server, signals, std::chrono::seconds(flags->Int("leave_secs")));
  metrics.reset();
  EndBySignal(SIGTERM);
  return 0;
}

}  // namespace edl::apps
