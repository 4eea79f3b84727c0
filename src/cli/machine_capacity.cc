#include "cli/machine_capacity.h"

#include <cstdlib>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "job/role.h"

namespace edl::cli {
namespace {

using backend::Finding;
using CheckResult = Finding::CheckResult;

std::string Gibibytes(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

int ReplicasOf(const job::JobSpec& job, job::Role role) {
  switch (role) {
    case job::Role::kMaster:
      return 1;
    case job::Role::kWorker:
      return job.num_workers;
    case job::Role::kPs:
      return job.num_ps;
    case job::Role::kChief:
      return job.need_tf_config ? 1 : 0;
    case job::Role::kEvaluator:
      return job.num_evaluators;
  }
  return 0;
}

Finding Blocked(std::string what, std::string detail, std::string fix) {
  return {.result = CheckResult::kMissing,
          .what = std::move(what),
          .detail = std::move(detail),
          .fix = std::move(fix),
          .blocks = true};
}

void CheckRole(const Machine& machine, const std::string& flag, const job::Resources& wanted,
               std::vector<Finding>& findings) {
  if (machine.memory_bytes > 0 && wanted.memory_bytes > machine.memory_bytes) {
    findings.push_back(
        Blocked("memory",
                fmt::format("--{} requests {}, but this machine has {}", flag,
                            Gibibytes(wanted.memory_bytes), Gibibytes(machine.memory_bytes)),
                fmt::format("request less memory with --{}, or run on a cluster", flag)));
  }
  for (const auto& [name, amount] : wanted.amounts) {
    if (!name.ends_with("/gpu") || machine.gpus < 0) continue;
    if (std::atoll(amount.c_str()) <= machine.gpus) continue;
    findings.push_back(Blocked(
        "gpu",
        fmt::format("--{} requests {} of {}, but this machine has {}", flag, amount, name,
                    machine.gpus),
        fmt::format("remove gpu= from --{}, or run on a machine or cluster with GPUs", flag)));
  }
  if (machine.cpus > 0 && wanted.cpu > machine.cpus) {
    findings.push_back({.result = CheckResult::kCannotTell,
                        .what = "cpu",
                        .detail = fmt::format("--{} requests {:g} CPUs, but this machine has {}: "
                                              "the job runs, but slower",
                                              flag, wanted.cpu, machine.cpus)});
  }
}

}  // namespace

std::vector<Finding> CheckCapacity(const Machine& machine, const FlagValues& flags,
                                   const job::JobSpec& job) {
  std::vector<Finding> findings;
  for (const auto& [role, resources] : job.resources) {
    const std::string flag = std::string(NameOf(role)) + "_resource_request";
    if (ReplicasOf(job, role) == 0 || !flags.given(flag)) continue;
    CheckRole(machine, flag, resources.request, findings);
  }
  if (!findings.empty()) return findings;
  return {{.what = "memory, CPUs and GPUs",
           .detail = "no replica requests more than this machine has"}};
}

}  // namespace edl::cli
