#include "backend/cluster_options.h"

#include <charconv>
#include <cmath>

#include "base/text.h"
#include "job/pairs.h"

namespace edl::backend {
namespace {

constexpr std::string_view kHigh = "high";
constexpr std::string_view kLow = "low";

// Names of classes, secrets and accounts: DNS-1123 subdomains.
bool IsObjectName(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  const auto edge = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  for (const char c : name) {
    if (!edge(c) && c != '-' && c != '.') return false;
  }
  return edge(name.front()) && edge(name.back());
}

Status CheckObjectName(std::string_view flag, std::string_view name) {
  if (name.empty() || IsObjectName(name)) return Ok();
  return InvalidArgument(
      "--{}={} is not a valid object name: use lower-case letters, digits, '-' and '.', with a "
      "letter or digit at both ends",
      flag, name);
}

std::optional<double> AsNumber(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

Status ReadPriorities(const FlagValues& flags, ClusterOptions& out) {
  for (const job::Role role : {job::Role::kMaster, job::Role::kWorker, job::Role::kPs,
                               job::Role::kChief, job::Role::kEvaluator}) {
    const std::string flag = std::string(job::NameOf(role)) + "_pod_priority";
    const std::string& value = flags.String(flag);
    if (const std::optional<double> fraction = AsNumber(value);
        role == job::Role::kWorker && fraction.has_value()) {
      if (!(*fraction >= 0 && *fraction <= 1)) {
        return InvalidArgument("--{}={}: the fraction of workers must be between 0 and 1", flag,
                               value);
      }
      out.high_fraction = fraction;
      continue;
    }
    EDL_RETURN_IF_ERROR(CheckObjectName(flag, value));
    out.priority_classes[role] = value;
  }
  return Ok();
}

Status ReadNames(const FlagValues& flags, ClusterOptions& out) {
  out.pull_secrets = SplitList(flags.String("image_pull_secrets"));
  for (const std::string& secret : out.pull_secrets) {
    EDL_RETURN_IF_ERROR(CheckObjectName("image_pull_secrets", secret));
  }
  out.service_account = flags.String("service_account");
  EDL_RETURN_IF_ERROR(CheckObjectName("service_account", out.service_account));
  auto variables = ParseSecretVariables(flags.String("env_secret"));
  if (!variables.ok()) return variables.status().Within("--env_secret");
  out.secret_variables = *std::move(variables);
  if (const std::string& file = flags.String("cluster_spec"); !file.empty()) {
    return InvalidArgument(
        "--cluster_spec={}: only `elasticdl train` runs this file, and passes its changes on in "
        "--cluster_spec_json; give that flag here",
        file);
  }
  auto spec = ClusterSpec::Parse(flags.String("cluster_spec_json"));
  if (!spec.ok()) return spec.status().Within("--cluster_spec_json");
  out.cluster_spec = *std::move(spec);
  return Ok();
}

Result<PodRestartPolicy> ParseRestartPolicy(const std::string& text) {
  for (const PodRestartPolicy policy :
       {PodRestartPolicy::kAlways, PodRestartPolicy::kOnFailure, PodRestartPolicy::kNever}) {
    if (NameOf(policy) == text) return policy;
  }
  return InvalidArgument("--restart_policy={}: expected Always, OnFailure or Never", text);
}

}  // namespace

std::string_view NameOf(PodRestartPolicy policy) {
  switch (policy) {
    case PodRestartPolicy::kAlways:
      return "Always";
    case PodRestartPolicy::kOnFailure:
      return "OnFailure";
    case PodRestartPolicy::kNever:
      return "Never";
  }
  return "";
}

Result<std::vector<SecretVariable>> ParseSecretVariables(std::string_view text) {
  EDL_ASSIGN_OR_RETURN(const std::vector<job::Pair> pairs, Trim(text).starts_with('{')
                                                               ? job::ParseJsonPairs(text)
                                                               : job::ParsePairs(text));
  std::vector<SecretVariable> out;
  for (const job::Pair& pair : pairs) {
    const size_t slash = pair.value.find('/');
    SecretVariable variable{.name = pair.key, .secret = pair.value.substr(0, slash)};
    if (slash != std::string::npos) variable.key = pair.value.substr(slash + 1);
    if (!IsObjectName(variable.secret) || variable.key.empty() ||
        variable.key.find('/') != std::string::npos) {
      return InvalidArgument("'{}'{}: expected SECRET/KEY", pair.value, job::At(pair.value_at));
    }
    out.push_back(std::move(variable));
  }
  return out;
}

std::string ClusterOptions::PriorityClassOf(job::Role role, int index, int count) const {
  if (role == job::Role::kWorker && high_fraction.has_value()) {
    // Workers that scaling adds later are in neither end.
    const int high = static_cast<int>(std::ceil(count * *high_fraction));
    const bool is_high = index < (high + 1) / 2 || (index < count && index >= count - high / 2);
    return std::string(is_high ? kHigh : kLow);
  }
  const auto given = [this](job::Role of) {
    const auto found = priority_classes.find(of);
    return found == priority_classes.end() ? std::string() : found->second;
  };
  std::string own = given(role);
  if (!own.empty() || (role != job::Role::kMaster && role != job::Role::kPs)) return own;
  if (high_fraction.has_value()) return std::string(kHigh);
  // Only the cluster knows which of two classes is higher, except for "high" and "low". Otherwise
  // takes the class of the more important role. `elasticdl check` compares the values.
  std::string best;
  for (const job::Role other : {job::Role::kMaster, job::Role::kPs, job::Role::kChief,
                                job::Role::kWorker, job::Role::kEvaluator}) {
    const std::string name = given(other);
    if (best.empty() || name == kHigh) best = name;
  }
  return best;
}

Result<ClusterOptions> MakeClusterOptions(const FlagValues& flags) {
  ClusterOptions out;
  const std::string& image = flags.String("image_name");
  if (image.empty()) {
    return InvalidArgument(
        "--image_name is missing: on Kubernetes the master runs from an image that contains this "
        "program (to train on this machine, give --backend=local)");
  }
  const auto given_or = [&](const char* flag) {
    return flags.String(flag).empty() ? image : flags.String(flag);
  };
  out.images = {{job::Role::kMaster, image},
                {job::Role::kPs, given_or("ps_image")},
                {job::Role::kWorker, given_or("worker_image")},
                {job::Role::kChief, given_or("worker_image")},
                {job::Role::kEvaluator, given_or("worker_image")}};
  out.image_pull_policy = flags.String("image_pull_policy");
  EDL_ASSIGN_OR_RETURN(out.restart_policy, ParseRestartPolicy(flags.String("restart_policy")));
  EDL_RETURN_IF_ERROR(ReadPriorities(flags, out));
  EDL_RETURN_IF_ERROR(ReadNames(flags, out));
  return out;
}

}  // namespace edl::backend
