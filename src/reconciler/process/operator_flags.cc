#include "reconciler/process/operator_flags.h"

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "base/version.h"

namespace edl::reconciler {
namespace {

constexpr int64_t kMostCalls = 1'000'000;

// An address as upstream's flags have it: ":8080", "127.0.0.1:0", "[::1]:8080", or "0" for none.
Status ParseAddress(const std::string& flag, const std::string& text, std::string& host,
                    int& port) {
  if (text == "0") {
    port = -1;
    return Ok();
  }
  const size_t colon = text.rfind(':');
  const char* const end = text.data() + text.size();
  const char* const begin = colon == std::string::npos ? end : text.data() + colon + 1;
  const auto parsed = std::from_chars(begin, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port < 0 || port > 65535) {
    return InvalidArgument("--{}={}: expected HOST:PORT, :PORT for all addresses, or 0 for none",
                           flag, text);
  }
  host = text.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return Ok();
}

// An empty name would only fail later, at the first call that uses it.
Status RequireValue(const FlagValues& flags, const char* flag) {
  if (!flags.String(flag).empty()) return Ok();
  return InvalidArgument("--{}=: must not be empty; leave the flag out for its default", flag);
}

}  // namespace

FlagTable OperatorFlags() {
  const char* const group = "Operator";
  return FlagTable({
      {.name = "namespace",
       .default_value = "",
       .group = group,
       .help = "Run the TFJobs of this namespace only; empty: of all namespaces.",
       .environment = "KUBEFLOW_NAMESPACE",
       .common = true},
      {.name = "leader-elect",
       .type = FlagType::kSwitch,
       .default_value = "false",
       .group = group,
       .help = "Work only while this process holds a lease, so that several operators can run and "
               "one of them works. The lease is in the namespace $MY_POD_NAMESPACE; if that is "
               "empty, in that of this pod, or in kubeflow outside of a cluster.",
       .common = true},
      {.name = "gang-scheduler-name",
       .default_value = "",
       .group = group,
       .help = "Let this scheduler start all pods of a job together: volcano, or the name of a "
               "scheduler of scheduler-plugins.",
       .common = true},
      {.name = "shard-service-image",
       .default_value = fmt::format("elasticdl/elasticdl:{}", kVersion),
       .group = group,
       .help = "The image of the data-shard services of jobs with the annotation "
               "tfjob.elasticdl.org/data-shards. It must have elasticdl in its PATH.",
       .value_name = "IMAGE"},
      {.name = "metrics-bind-address",
       .default_value = ":8080",
       .group = group,
       .help = "Address of /metrics, in the text format of Prometheus; port 0 picks one, and 0 "
               "means none.",
       .value_name = "HOST:PORT"},
      {.name = "health-probe-bind-address",
       .default_value = ":8081",
       .group = group,
       .help = "Address of /healthz and /readyz; port 0 picks one, and 0 means none.",
       .value_name = "HOST:PORT"},
      {.name = "controller-threads",
       .type = FlagType::kInt,
       .default_value = "4",
       .group = group,
       .help = "The most jobs that are reconciled at the same time.",
       .at_least = 1,
       .at_most = 256},
      {.name = "kube-api-qps",
       .type = FlagType::kInt,
       .default_value = "200",
       .group = group,
       .help = "The most calls per second to the API server, on average.",
       .at_least = 1,
       .at_most = kMostCalls},
      {.name = "kube-api-burst",
       .type = FlagType::kInt,
       .default_value = "400",
       .group = group,
       .help = "The most calls to the API server at once, after a pause.",
       .at_least = 1,
       .at_most = kMostCalls},
      {.name = "leader-election-id",
       .default_value = "1ca428e5.training-operator.kubeflow.org",
       .group = group,
       .help = "The name of the lease. The default is that of Kubeflow's operator, so that the two "
               "do not work at the same time if both run with --leader-elect in one namespace. "
               "Kubeflow's operator does so only if it is told to.",
       .value_name = "NAME"},
      {.name = "kubeconfig",
       .default_value = "",
       .group = group,
       .help =
           "The cluster and its credentials; empty: $KUBECONFIG, ~/.kube/config, or the service "
           "account of this pod.",
       .value_name = "FILE"},
      {.name = "help",
       .type = FlagType::kSwitch,
       .default_value = "false",
       .letter = 'h',
       .hidden = true},
  });
}

Result<OperatorConfig> ParseOperatorFlags(const std::vector<std::string>& arguments) {
  const FlagTable table = OperatorFlags();
  EDL_ASSIGN_OR_RETURN(FlagValues flags, ParseFlags(table, arguments));
  OperatorConfig config;
  config.help = flags.Bool("help");
  if (config.help) return config;
  if (!flags.arguments().empty()) {
    return InvalidArgument("unexpected argument '{}': this command takes only flags",
                           flags.arguments().front());
  }
  EDL_RETURN_IF_ERROR(
      SetFromEnvironment(flags, [](const char* name) { return std::getenv(name); }));
  EDL_RETURN_IF_ERROR(RequireValue(flags, "leader-election-id"));
  EDL_RETURN_IF_ERROR(RequireValue(flags, "shard-service-image"));
  config.ns = flags.String("namespace");
  config.kubeconfig = flags.String("kubeconfig");
  config.leader_elect = flags.Bool("leader-elect");
  config.lease_name = flags.String("leader-election-id");
  config.gang_scheduler = flags.String("gang-scheduler-name");
  config.shard_service_image = flags.String("shard-service-image");
  config.threads = static_cast<int>(flags.Int("controller-threads"));
  config.calls_per_second = static_cast<double>(flags.Int("kube-api-qps"));
  config.burst = static_cast<int>(flags.Int("kube-api-burst"));
  EDL_RETURN_IF_ERROR(ParseAddress("metrics-bind-address", flags.String("metrics-bind-address"),
                                   config.metrics_host, config.metrics_port));
  EDL_RETURN_IF_ERROR(ParseAddress("health-probe-bind-address",
                                   flags.String("health-probe-bind-address"), config.probe_host,
                                   config.probe_port));
  return config;
}

}  // namespace edl::reconciler
