#include "ps/process/ps_flags.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <string_view>

#include <arpa/inet.h>

#include "base/cpus.h"
#include "base/secret.h"

namespace edl::ps {
namespace {

constexpr std::string_view kRootFlag = "checkpoint_root";

// Removes --checkpoint_root, which may be given several times, from the arguments. Returns its
// values.
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

Result<ServerOptions> OptionsFrom(const FlagValues& flags) {
  if (!flags.arguments().empty()) {
    return InvalidArgument("unexpected argument '{}': this command takes only flags",
                           flags.arguments().front());
  }
  std::random_device random;
  ServerOptions options{
      .host = flags.String("host"),
      .port = static_cast<uint16_t>(flags.Int("port")),
      .lanes = static_cast<size_t>(flags.Int("lanes")),
      .index = static_cast<size_t>(flags.Int("index")),
      .servers = static_cast<size_t>(flags.Int("servers")),
      .incarnation = job::PsIncarnation((uint64_t{random()} << 32) | random()),
      .managed = flags.Bool("managed"),
      .save_buffer_bytes = static_cast<size_t>(flags.Int("save_buffer_mb")) << 20,
  };
  if (const std::string& file = flags.String("token_file"); !file.empty()) {
    Result<std::string> token = ReadSecretFile(file);
    if (!token.ok()) return token.status().Within("--token_file");
    options.token = *std::move(token);
  }
  if (options.token.empty() && !IsLoopback(options.host) && !flags.Bool("insecure")) {
    return InvalidArgument(
        "--host={} accepts connections from other machines, but no token is set: give "
        "--token_file=FILE, or --insecure if everyone who reaches the port may read and change the "
        "parameters",
        options.host);
  }
  return options;
}

}  // namespace

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
       .help = "Address to listen on; empty: all addresses of this machine.",
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
       .help = "Index of this server among the servers of the job, from 0.",
       .at_least = 0},
      {.name = "servers",
       .type = FlagType::kInt,
       .default_value = "1",
       .group = "Parameter server",
       .help = "Number of servers that share the parameters.",
       .at_least = 1},
      {.name = "save_buffer_mb",
       .type = FlagType::kInt,
       .default_value = "256",
       .group = "Parameter server",
       .help = "Limit in MiB of the parameters that wait for the disk during a save, for all lanes "
               "together; when it is reached, pushes wait.",
       .at_least = 1},
      {.name = "http_port",
       .type = FlagType::kInt,
       .default_value = "-1",
       .group = "Parameter server",
       .help = "HTTP port for /metrics, which Prometheus reads, and /healthz; 0 picks one and "
               "prints it; -1: no such port. If there is a token, /metrics requires the header "
               "'Authorization: Bearer TOKEN'.",
       .at_least = -1,
       .at_most = 65535},
      {.name = "metrics_without_token",
       .type = FlagType::kSwitch,
       .default_value = "false",
       .group = "Parameter server",
       .help = "Serve /metrics without the token, for a Prometheus that does not have it."},
      {.name = "job_name",
       .default_value = "",
       .group = "Parameter server",
       .help = "The label job_name of all metrics.",
       .value_name = "NAME"},
      {.name = "managed",
       .type = FlagType::kSwitch,
       .default_value = "false",
       .group = "Parameter server",
       .help = "Part of a job: serve workers only after the job's master permits it."},
      {.name = "leave_secs",
       .type = FlagType::kInt,
       .default_value = "20",
       .group = "Parameter server",
       .help = "Part of a job: how many seconds to wait, after SIGTERM, until the master has saved "
               "this server's parameters.",
       .at_least = 0},
      {.name = "token_file",
       .default_value = "",
       .group = "Parameter server",
       .help = "File with the token that callers must send; without it, everyone who reaches the "
               "port is served.",
       .value_name = "FILE"},
      {.name = std::string(kRootFlag),
       .default_value = "",
       .group = "Parameter server",
       .help = "Folder below which callers may save and restore checkpoints; may be given several "
               "times. Without it: anywhere if there is a token, otherwise nowhere.",
       .value_name = "DIR"},
      {.name = "insecure",
       .type = FlagType::kSwitch,
       .default_value = "false",
       .group = "Parameter server",
       .help = "Accept connections from other machines without a token: everyone who reaches the "
               "port can read and change all parameters."},
      {.name = "help",
       .type = FlagType::kSwitch,
       .default_value = "false",
       .letter = 'h',
       .hidden = true},
  });
}

Result<PsConfig> ParsePsFlags(std::vector<std::string> arguments) {
  PsConfig config;
  EDL_ASSIGN_OR_RETURN(std::vector<std::filesystem::path> roots, TakeRoots(arguments));
  EDL_ASSIGN_OR_RETURN(const FlagValues flags, ParseFlags(PsFlags(), arguments));
  if (flags.Bool("help")) {
    config.help = true;
    return config;
  }
  EDL_ASSIGN_OR_RETURN(config.server, OptionsFrom(flags));
  config.server.checkpoint_roots = std::move(roots);
  config.http_port = static_cast<int>(flags.Int("http_port"));
  config.metrics_without_token = flags.Bool("metrics_without_token");
  config.job_name = flags.String("job_name");
  config.leave_timeout = std::chrono::seconds(flags.Int("leave_secs"));
  return config;
}

}  // namespace edl::ps
