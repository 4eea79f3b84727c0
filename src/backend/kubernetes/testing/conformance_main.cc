// Runs the conformance suite of backends in the cluster of $KUBECONFIG, in the namespace
// $EDL_NAMESPACE, which must exist. The nodes of the cluster must be on this machine
// (tools/cluster), so that the test can kill the process of a container without the kubelet.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "backend/kubernetes/kubernetes_backend.h"
#include "backend/testing/conformance.h"
#include "base/clock.h"
#include "base/file.h"
#include "job/train_flags.h"
#include "kube/config.h"
#include "kube/connection.h"

namespace edl::backend::kubernetes {
namespace {

namespace fs = std::filesystem;

kube::Config* found = nullptr;  // set before the first test runs

PodMaker MakeMaker() {
  FlagValues flags(job::TrainFlags());
  for (const auto& [flag, value] :
       std::map<std::string, std::string>{{"job_name", "suite"},
                                          {"job_command", "none"},
                                          {"image_name", "busybox:1"},
                                          {"image_pull_policy", "IfNotPresent"},
                                          {"worker_resource_request", "cpu=10m,memory=32Mi"}}) {
    CHECK(flags.Set(flag, value, FlagSource::kCommandLine).ok(), "--{}={}", flag, value);
  }
  return {*job::MakeJobSpec(flags), *backend::MakeClusterOptions(flags), found->ns};
}

std::vector<std::string> Shell(const std::string& command) { return {"sh", "-c", command}; }

// A pod that stands in for the master, and its backend.
class ClusterSubject final : public ConformanceSubject {
 public:
  ClusterSubject()
      : connection_(*found, clock_, {}),
        timing_(kube::RealTiming(clock_)),
        client_(connection_, timing_) {}

  Status Start() override {
    kube::Object secret = MakeMaker().JobSecret("{}", "token");
    (void)client_.Create(kube::kSecrets, secret);
    kube::Object master(kube::kPods, {found->ns, "elasticdl-suite-master"});
    master.fields()["spec"] = {
        {"containers", {{{"name", "master"}, {"image", "busybox:1"}, {"command", {"true"}}}}},
        {"restartPolicy", "Never"}};
    EDL_ASSIGN_OR_RETURN(const kube::Object created, client_.Create(kube::kPods, master));
    backend_ = std::make_unique<KubernetesBackend>(
        connection_, timing_, MakeMaker(), KubernetesBackend::Options{.master = created.AsOwner()});
    return Ok();
  }
  ~ClusterSubject() override {
    backend_.reset();
    const auto pods = client_.List(kube::kPods, found->ns);
    for (const kube::Object& pod : pods.ok() ? pods->items : std::vector<kube::Object>{}) {
      EXPECT_EQ(client_.Delete(kube::kPods, pod.key(), {.grace = std::chrono::seconds(0)}), Ok());
    }
  }

  Backend& backend() override { return *backend_; }
  bool HasProcessIds() const override { return false; }
  // PID 1 ignores signals for which it has no handler.
  std::vector<std::string> ThatRuns() override {
    return Shell("trap 'exit 143' TERM; sleep 1000 & wait");
  }
  std::vector<std::string> ThatIgnoresTerm() override {
    return Shell("trap '' TERM; sleep 1000; sleep 1000");
  }
  std::vector<std::string> ThatExits(int code) override {
    return Shell(fmt::format("exit {}", code));
  }
  std::vector<std::string> ThatDiesOf(int signal) override {
    return Shell(fmt::format("sh -c 'kill -{} $$'; exit $?", signal));
  }
  std::vector<std::string> ThatPrints(const std::string& text) override {
    return {"printf", "%s", text};
  }
  std::vector<std::string> ThatCannotStart() override { return {"/no/such/program"}; }

  void KillFromOutside(const job::ReplicaEvent& running, int signal) override {
    const auto pod = client_.Get(kube::kPods, {found->ns, running.name});
    ASSERT_OK(pod);
    int killed = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const auto groups = ReadFile(entry.path() / "cgroup");
      const auto command = ReadFile(entry.path() / "cmdline");
      const auto status = ReadFile(entry.path() / "status");
      if (!groups.ok() || groups->find(pod->uid()) == std::string::npos) continue;
      // Only the first process of the container: its children have the same command line for a
      // moment.
      if (!command.ok() || command->find("trap") == std::string::npos) continue;
      if (!status.ok() || !std::regex_search(*status, std::regex("\nNSpid:[^\n]*\t1\n"))) continue;
      killed += kill(std::stoi(name), signal) == 0 ? 1 : 0;
    }
    EXPECT_EQ(killed, 1);
  }

 private:
  SystemClock clock_;
  kube::Connection connection_;
  kube::Timing timing_;
  kube::Client client_;
  std::unique_ptr<KubernetesBackend> backend_;
};

INSTANTIATE_TEST_SUITE_P(Kubernetes, BackendConformance, testing::Values(MakeSubject([] {
                           return std::make_unique<ClusterSubject>();
                         })));

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto config =
      kube::LoadConfig({.kubeconfig = Environment("KUBECONFIG"), .home = Environment("HOME")});
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return 2;
  }
  if (const std::string ns = Environment("EDL_NAMESPACE"); !ns.empty()) {
    config->ns = ns;
  }
  found = &*config;
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace edl::backend::kubernetes

int main(int argc, char** argv) { return edl::backend::kubernetes::Main(argc, argv); }
