#include "backend/kubernetes/quota.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "backend/kubernetes/resource_list.h"
#include "base/json.h"

namespace edl::backend::kubernetes {
namespace {

using nlohmann::json;

// The resources of one pod, under the names that quotas use.
ResourceList UsageOf(const json& pod) {
  ResourceList out;
  for (const auto& [name, amount] : RequestsOf(pod)) {
    out[name] = amount;
    out[(name == "pods" ? "count/" : "requests.") + name] = amount;
  }
  for (const auto& [name, amount] : LimitsOf(pod)) out["limits." + name] = amount;
  return out;
}

}  // namespace

bool TrainsWithoutWorkers(const std::vector<PodGroup>& groups) {
  return std::any_of(groups.begin(), groups.end(),
                     [](const PodGroup& group) { return group.role == job::Role::kChief; });
}

Finding CheckQuota(const kube::Object& quota, const std::vector<PodGroup>& groups) {
  using CheckResult = Finding::CheckResult;
  Finding finding{.what = "quota " + quota.name()};
  if (!ListAt(quota.fields(), {"spec", "scopes"}).empty() ||
      !FieldAt(quota.fields(), {"spec", "scopeSelector"}).is_null()) {
    finding.result = CheckResult::kCannotTell;
    finding.detail = "it applies only to pods in its scopes";
    finding.fix = fmt::format("kubectl -n {} describe quota {}", quota.ns(), quota.name());
    return finding;
  }
  ResourceList others;  // all but workers
  ResourceList worker;
  int64_t workers = 0;
  for (const PodGroup& group : groups) {
    if (group.role == job::Role::kWorker) {
      worker = UsageOf(group.pod.fields());
      workers += group.count;
    } else {
      Add(others, UsageOf(group.pod.fields()), group.count);
    }
  }
  const ResourceList hard = ResourceListIn(FieldAt(quota.fields(), {"status", "hard"}));
  const ResourceList used = ResourceListIn(FieldAt(quota.fields(), {"status", "used"}));
  const int64_t least = TrainsWithoutWorkers(groups) ? 0 : std::min<int64_t>(workers, 1);
  int64_t fit = workers;
  for (const auto& [name, limit] : hard) {
    const int64_t free = limit - AmountOf(used, name);
    const int64_t left = free - AmountOf(others, name);
    const int64_t each = AmountOf(worker, name);
    if (AmountOf(others, name) + each == 0) continue;
    if (left < each * least) {
      finding.result = CheckResult::kMissing;
      finding.detail = fmt::format("{} left, but the job {} requests {}", Show({{name, free}}),
                                   least == 0 ? "without its workers" : "with one worker",
                                   Show({{name, AmountOf(others, name) + each * least}}));
      finding.fix = fmt::format(
          "lower --*_resource_request, or request a larger quota for namespace {}", quota.ns());
      return finding;
    }
    if (each > 0) fit = std::min(fit, left / each);
  }
  finding.detail = fit == workers ? "enough for the whole job"
                                  : fmt::format("enough for {} of {} workers", fit, workers);
  return finding;
}

}  // namespace edl::backend::kubernetes
