#include "reconciler/process/operator_process.h"

#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "http/pages.h"
#include "metrics/exposition.h"
#include "metrics/process_metrics.h"
#include "reconciler/pod_group.h"
#include "reconciler/process/job_operator.h"
#include "reconciler/process/operator_flags.h"
#include <unistd.h>

#include "base/clock.h"
#include "base/environment.h"
#include "base/flag_help.h"
#include "base/log.h"
#include "base/secret.h"
#include "kube/config.h"
#include "kube/connection.h"
#include "kube/lease.h"
#include "kube/timing.h"

namespace edl::reconciler {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBadFlags = 2;

int Fail(const Status& status, int code) {
  std::cerr << "elasticdl operator: " << status.message() << "\n";
  return code;
}

// Blocks the signals in all threads that are started later, so that sigwait() gets them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  // A client of the HTTP port may close its connection at any time.
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

std::string HostName() {
  std::string name(256, '\0');
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  name.resize(name.find('\0'));
  return name;
}

// Unique for each process, so that a restarted one does not take the lease of its predecessor.
std::string NewIdentity() {
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}", HostName(), random(), random());
}

Result<kube::Config> ClusterConfig(const OperatorConfig& config) {
  auto found = kube::LoadConfig({.file = config.kubeconfig,
                                 .kubeconfig = Variable("KUBECONFIG"),
                                 .home = Variable("HOME"),
                                 .service_host = Variable("KUBERNETES_SERVICE_HOST"),
                                 .service_port = Variable("KUBERNETES_SERVICE_PORT")});
  if (found.status().code() == Code::kNotFound) {
    return NotFound(
        "no cluster is configured: set KUBECONFIG, give --kubeconfig=FILE, or run the "
        "operator in a pod (kubectl apply -k elasticdl/manifests/tfjob-operator)");
  }
  return found;
}

// The scheduler could not start any pod without this kind.
Status CheckPodGroups(kube::Connection& connection, const kube::Timing& timing,
                      const OperatorConfig& config) {
  if (config.gang_scheduler.empty()) return Ok();
  const kube::Resource& groups = PodGroupsOf(config.gang_scheduler);
  kube::Client client(connection, timing, {.timeout = std::chrono::seconds(5), .tries = 1});
  const auto listed = client.List(groups, config.ns);
  if (listed.ok()) return Ok();
  if (listed.status().code() != Code::kNotFound) {
    LOG_WARNING("operator: cannot check {}: {}", groups.kind, listed.status().message());
    return Ok();  // the watch of the kind waits until the server answers, or allows it
  }
  return FailedPrecondition(
      "--gang-scheduler-name={}: the cluster does not serve {} {}: install the scheduler first",
      config.gang_scheduler, groups.api_version(), groups.kind);
}

// `elasticdl operator` after its flags were parsed.
class Process {
 public:
  Process(const OperatorConfig& config, kube::Config cluster, const sigset_t& signals)
      : config_(config),
        signals_(signals),
        identity_(NewIdentity()),
        connection_(std::move(cluster), clock_, EnvironmentStrings()),
        timing_(kube::RealTiming(clock_)),
        lease_(connection_, kube::RealTiming(boot_clock_),
               {.key = {LeaseNamespace(), config.lease_name}, .identity = identity_}),
        jobs_(connection_, timing_,
              {.ns = config.ns,
               .instance = HostName(),
               .pods = {.cluster_domain = Variable("CUSTOM_CLUSTER_DOMAIN"),
                        .gang_scheduler = config.gang_scheduler},
               .shards = {.image = config.shard_service_image, .new_token = NewToken},
               .threads = config.threads,
               .calls_per_second = config.calls_per_second,
               .burst = config.burst,
               .may_write = [this] { return !config_.leader_elect || lease_.held(); }}) {}

  int Run() {
    if (const Status started = StartPages(); !started.ok()) return Fail(started, kExitFailed);
    if (const Status served = CheckPodGroups(connection_, timing_, config_); !served.ok()) {
      return Fail(served, kExitFailed);
    }
    std::jthread work([this](const std::stop_token& stop) {
      if (LeadIfNeeded(stop)) StartJobs();
    });
    int signal = 0;
    sigwait(&signals_, &signal);
    LOG_INFO("operator: signal {}: ending", signal);
    work.request_stop();
    work.join();
    jobs_.Stop();
    Release();
    return 0;
  }

 private:
  static std::vector<std::string> EnvironmentStrings() {
    std::vector<std::string> out;
    for (const auto& [name, value] : Environment())
      out.push_back(fmt::format("{}={}", name, value));
    return out;
  }

  std::string LeaseNamespace() const {
    std::string ns = Variable("MY_POD_NAMESPACE");
    if (!ns.empty()) return ns;
    return connection_.config().context.empty() ? connection_.config().ns : "kubeflow";
  }

  Status StartPages() {
    const auto ok = [](const http::PageRequest&) { return http::Page{.text = "ok\n"}; };
    const auto ready = [this](const http::PageRequest&) {
      // A process that waits until another one loses the lease is ready to take over.
      if (waiting_ || jobs_.ready()) return http::Page{.text = "ok\n"};
      const bool leads = !config_.leader_elect || lease_.held();
      return http::Page{.status = 503,
                        .text = leads ? "the lists of jobs and pods have not arrived yet\n"
                                      : "the lease could not be read or acquired yet\n"};
    };
    const auto metrics_page = [this](const http::PageRequest& request) {
      const metrics::Format format = metrics::FormatFor(request.accept);
      metrics::Exposition out(format, {});
      jobs_.AddMetrics(out, !config_.leader_elect || lease_.held());
      metrics::AddProcess(out);
      return http::Page{.text = out.Finish(), .type = std::string(metrics::ContentTypeOf(format))};
    };
    if (config_.probe_port >= 0) {
      EDL_ASSIGN_OR_RETURN(probes_,
                           http::PageServer::Start({.host = config_.probe_host,
                                                    .port = config_.probe_port,
                                                    .flag = "--health-probe-bind-address"},
                                                   {{"/healthz", ok}, {"/readyz", ready}}));
      const std::string host = config_.probe_host.empty() ? "*" : config_.probe_host;
      LOG_INFO("operator: probes on {}:{}", host, probes_->port());
    }
    if (config_.metrics_port >= 0) {
      EDL_ASSIGN_OR_RETURN(pages_, http::PageServer::Start({.host = config_.metrics_host,
                                                            .port = config_.metrics_port,
                                                            .flag = "--metrics-bind-address"},
                                                           {{"/metrics", metrics_page}}));
      const std::string host = config_.metrics_host.empty() ? "*" : config_.metrics_host;
      LOG_INFO("operator: metrics on {}:{}", host, pages_->port());
    }
    return Ok();
  }

  // Returns true once this process may work.
  bool LeadIfNeeded(const std::stop_token& stop) {
    if (!config_.leader_elect) return true;
    const auto on_error = [](const Status& error) {
      LOG_WARNING("operator: cannot get or renew the lease: {}; retrying", error.message());
    };
    const Status acquired = lease_.Acquire(
        stop,
        [this](const std::string& holder) {
          waiting_ = true;
          LOG_INFO("operator: waiting for the lease, which {} holds", holder);
        },
        on_error);
    if (stop.stop_requested()) return false;
    if (!acquired.ok()) {
      LOG_ERROR("operator: cannot get the lease: {}", acquired.message());
      _exit(kExitFailed);
    }
    LOG_INFO("operator: this process holds the lease as {}", identity_);
    keeper_ = std::jthread([this, on_error](const std::stop_token& ended) {
      const Status kept = lease_.Keep(ended, on_error);
      if (kept.ok()) return;
      // Another operator works now. The plans of this one must not be carried out any more.
      LOG_ERROR("operator: lost the lease: {}; exiting", kept.message());
      _exit(kExitFailed);
    });
    waiting_ = false;
    return true;
  }

  void StartJobs() {
    jobs_.Start([this] {
      LOG_INFO("operator: watching TFJobs in {}",
               config_.ns.empty() ? "all namespaces" : "namespace " + config_.ns);
    });
  }

  void Release() {
    if (keeper_.joinable()) {
      keeper_.request_stop();
      keeper_.join();
    }
    // It is also held if the signal arrived before the keeper was started.
    if (const Status released = lease_.Release(); !released.ok()) {
      LOG_WARNING("operator: cannot release the lease: {}", released.message());
    }
  }

  const OperatorConfig config_;
  const sigset_t signals_;
  const std::string identity_;
  const SystemClock clock_;
  const kube::BootClock boot_clock_;
  kube::Connection connection_;
  const kube::Timing timing_;
  kube::LeaseHolder lease_;
  std::atomic<bool> waiting_ = false;  // for another holder of the lease
  JobOperator jobs_;
  std::jthread keeper_;
  // Last, because their pages use all of the above.
  std::unique_ptr<http::PageServer> probes_;
  std::unique_ptr<http::PageServer> pages_;
};

}  // namespace

int RunOperator(int argc, char** argv) {
  const Result<OperatorConfig> config = ParseOperatorFlags({argv, argv + argc});
  if (!config.ok()) return Fail(config.status(), kExitBadFlags);
  if (config->help) {
    std::cout
        << "Usage: elasticdl operator [--namespace=NS] [--leader-elect] ...\n\n"
           "Runs the TFJobs of a cluster, as Kubeflow's training operator does\n"
           "(docs/tfjob.md). `kubectl apply -k elasticdl/manifests/tfjob-operator` runs it in\n"
           "the cluster. Outside of a cluster it uses the kubeconfig of kubectl.\n\n"
        << FlagHelp(OperatorFlags());
    return 0;
  }
  Result<kube::Config> cluster = ClusterConfig(*config);
  if (!cluster.ok()) return Fail(cluster.status(), kExitFailed);
  const sigset_t signals = BlockSignals();
  LOG_INFO("operator: using {}", cluster->source.empty() ? cluster->server : cluster->source);
  return Process(*config, *std::move(cluster), signals).Run();
}

}  // namespace edl::reconciler
