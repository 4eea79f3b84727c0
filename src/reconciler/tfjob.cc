#include "reconciler/tfjob.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;

constexpr int64_t kMostReplicas = 10'000;
constexpr size_t kLongestName = 63;  // of a service

std::optional<int64_t> IntegerIn(const json& in, const char* name) {
  const json& field = FieldAt(in, {name});
  return field.is_number_integer() ? std::optional(field.get<int64_t>()) : std::nullopt;
}

std::optional<std::chrono::seconds> SecondsIn(const json& in, const char* name) {
  // Larger values would overflow when they are added to a time.
  constexpr int64_t kMost = int64_t{50} * 365 * 24 * 3600;
  const auto value = IntegerIn(in, name);
  if (!value) return std::nullopt;
  return std::chrono::seconds(std::clamp<int64_t>(*value, 0, kMost));
}

Result<RestartPolicy> ParseRestartPolicy(const std::string& text) {
  if (text.empty() || text == "Never") return RestartPolicy::kNever;
  if (text == "OnFailure") return RestartPolicy::kOnFailure;
  if (text == "Always") return RestartPolicy::kAlways;
  if (text == "ExitCode") return RestartPolicy::kExitCode;
  return InvalidArgument(
      "restartPolicy: Unsupported value: \"{}\": supported values: \"Always\", \"OnFailure\", "
      "\"Never\", \"ExitCode\"",
      text);
}

// Other texts, also an empty one, mean All, as in the upstream operator: it accepted such jobs, and
// they may run. The CRD rejects new ones.
CleanPodPolicy ParseCleanPodPolicy(const json& given) {
  if (!given.is_string() || given == "None") return CleanPodPolicy::kNone;
  return given == "Running" ? CleanPodPolicy::kRunning : CleanPodPolicy::kAll;
}

// The index of the container that gets the default port.
size_t DefaultedContainer(const json& containers) {
  for (size_t i = 0; i < containers.size(); ++i) {
    if (TextIn(containers[i], "name") == kContainerName) return i;
  }
  return 0;
}

// Adds the port "tfjob-port" if it is missing, and returns its number.
int64_t DefaultPort(json& pod_template) {
  const json& found = FieldAt(pod_template, {"spec", "containers"});
  if (!found.is_array() || found.empty()) return kDefaultPort;
  json& containers = pod_template["spec"]["containers"];
  json& container = containers[DefaultedContainer(containers)];
  if (!container.is_object()) return kDefaultPort;
  for (const json& port : ListAt(container, {"ports"})) {
    const int64_t number = NumberIn(port, "containerPort");
    if (TextIn(port, "name") == kPortName && number > 0) return number;
  }
  if (!container.contains("ports") || !container["ports"].is_array()) {
    container["ports"] = json::array();
  }
  container["ports"].push_back({{"name", kPortName}, {"containerPort", kDefaultPort}});
  return kDefaultPort;
}

Result<ReplicaSpec> ParseReplicaSpec(const json& given) {
  ReplicaSpec out;
  out.replicas = static_cast<int>(
      std::clamp<int64_t>(IntegerIn(given, "replicas").value_or(1), 0, kMostReplicas));
  EDL_ASSIGN_OR_RETURN(out.restart, ParseRestartPolicy(TextIn(given, "restartPolicy")));
  const json& pod_template = FieldAt(given, {"template"});
  out.pod_template = pod_template.is_object() ? pod_template : json::object();
  out.port = DefaultPort(out.pod_template);
  return out;
}

void ParseRunPolicy(const json& policy, TFJob& out) {
  out.clean = ParseCleanPodPolicy(FieldAt(policy, {"cleanPodPolicy"}));
  out.ttl = SecondsIn(policy, "ttlSecondsAfterFinished");
  out.deadline = SecondsIn(policy, "activeDeadlineSeconds");
  out.backoff_limit = IntegerIn(policy, "backoffLimit");
  out.suspended = FlagIn(policy, "suspend");
  const json& scheduling = FieldAt(policy, {"schedulingPolicy"});
  out.scheduling = {.min_available = IntegerIn(scheduling, "minAvailable"),
                    .queue = TextIn(scheduling, "queue"),
                    .min_resources = FieldAt(scheduling, {"minResources"}),
                    .priority_class = TextIn(scheduling, "priorityClass"),
                    .timeout_seconds = IntegerIn(scheduling, "scheduleTimeoutSeconds")};
}

// The number of workers in an annotation. nullopt: there is none, or it is not such a number.
std::optional<int> WorkersIn(const TFJob& job, const char* annotation) {
  const auto found = job.annotations.find(annotation);
  if (found == job.annotations.end()) return std::nullopt;
  const std::string& text = found->second;
  const char* const end = text.data() + text.size();
  int number = 0;
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 1 || number > kMostReplicas) {
    return std::nullopt;
  }
  return number;
}

// Whether the names of so many workers are valid.
bool HaveValidNames(const TFJob& job, int workers) {
  return ReplicaName(job.key.name, ReplicaType::kWorker, workers - 1).size() <= kLongestName;
}

// Limits dynamic workers to the annotations.
void LimitWorkers(TFJob& job) {
  const auto workers = job.replicas.find(ReplicaType::kWorker);
  if (!job.dynamic_workers || workers == job.replicas.end()) return;
  int& replicas = workers->second.replicas;
  if (const auto most = WorkersIn(job, kMaxWorkers)) replicas = std::min(replicas, *most);
  if (const auto least = job.min_workers()) replicas = std::max(replicas, *least);
}

bool IsDns1035Label(const std::string& name) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.empty() || name.size() > kLongestName || !is_lower(name.front()) || name.back() == '-') {
    return false;
  }
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
}

void ValidateReplicas(const std::string& role, const json& spec, std::vector<std::string>& out) {
  const int64_t replicas = IntegerIn(spec, "replicas").value_or(1);
  if (replicas < 0 || replicas > kMostReplicas) {
    out.push_back(
        fmt::format("spec.tfReplicaSpecs[{}].replicas: Invalid value: {}: must be between 0 and {}",
                    role, replicas, kMostReplicas));
  }
  const std::string path = fmt::format("spec.tfReplicaSpecs[{}].template.spec.containers", role);
  const json& containers = ListAt(spec, {"template", "spec", "containers"});
  if (containers.empty()) out.push_back(path + ": Required value: must be specified");
  bool trains = false;
  for (size_t i = 0; i < containers.size(); ++i) {
    if (TextIn(containers[i], "image").empty()) {
      out.push_back(fmt::format("{}[{}].image: Required value: must be required", path, i));
    }
    trains = trains || TextIn(containers[i], "name") == kContainerName;
  }
  if (!trains) {
    out.push_back(path + ": Required value: must have at least one container with name tensorflow");
  }
}

// Jobs that could never end, or would succeed without doing anything.
void ValidateRoles(const json& specs, std::vector<std::string>& out) {
  const auto replicas = [&](ReplicaType type) -> int64_t {
    for (const auto& [role, spec] : specs.items()) {
      if (ParseReplicaType(role) == type) return IntegerIn(spec, "replicas").value_or(1);
    }
    return -1;
  };
  const bool chief = replicas(ReplicaType::kChief) > 0 || replicas(ReplicaType::kMaster) > 0;
  if (!chief && replicas(ReplicaType::kWorker) < 1) {
    out.emplace_back(
        "spec.tfReplicaSpecs: Required value: must have at least 1 replica of the role that "
        "decides about the end of the job: Chief or Master, or Worker if the job has neither");
  }
}

void ValidateSpecs(const std::string& name, const json& specs, std::vector<std::string>& out) {
  int chiefs = 0;
  std::set<ReplicaType> known;
  for (const auto& [role, spec] : specs.items()) {
    const auto type = ParseReplicaType(role);
    if (!type) {
      out.push_back(fmt::format(
          "spec.tfReplicaSpecs: Unsupported value: \"{}\": supported values: \"Chief\", "
          "\"Evaluator\", \"Master\", \"PS\", \"Worker\"",
          role));
      continue;
    }
    if (!known.insert(*type).second) {
      out.push_back(fmt::format(
          "spec.tfReplicaSpecs: Duplicate value: \"{}\": must not have a role twice, in different "
          "cases",
          role));
    }
    if (IsChiefOrMaster(*type)) ++chiefs;
    ValidateReplicas(std::string(NameOf(*type)), spec, out);
    const int64_t replicas = IntegerIn(spec, "replicas").value_or(1);
    if (replicas < 1) continue;  // it has no names
    const std::string longest = fmt::format("{}-{}-{}", name, LowerNameOf(*type), replicas - 1);
    if (longest.size() > kLongestName) {
      out.push_back(fmt::format(
          "metadata.name: Invalid value: \"{}\": must be shorter: the service \"{}\" would have {} "
          "characters, the most are {}",
          name, longest, longest.size(), kLongestName));
    }
  }
  if (chiefs > 1) {
    out.emplace_back(
        "spec.tfReplicaSpecs: Forbidden: must not have more than 1 Chief or Master role");
  }
  ValidateRoles(specs, out);
}

}  // namespace

std::optional<ReplicaType> TFJob::chief() const {
  for (const ReplicaType type : {ReplicaType::kChief, ReplicaType::kMaster}) {
    const auto found = replicas.find(type);
    if (found != replicas.end() && found->second.replicas > 0) return type;
  }
  return std::nullopt;
}

int64_t TFJob::total_replicas() const {
  int64_t total = 0;
  for (const auto& [type, spec] : replicas) total += spec.replicas;
  return total;
}

bool TFJob::Option(const char* annotation, bool by_default) const {
  const auto found = annotations.find(annotation);
  if (found == annotations.end()) return by_default;
  if (found->second == "true") return true;
  if (found->second == "false") return false;
  return by_default;
}

std::optional<int> TFJob::min_workers() const {
  const auto given = WorkersIn(*this, kMinWorkers);
  return given && HaveValidNames(*this, *given) ? given : std::nullopt;
}

std::vector<std::string> TFJob::AnnotationMistakes() const {
  std::vector<std::string> out;
  const auto check = [&](const char* name, bool valid, std::string_view rule) {
    const auto found = annotations.find(name);
    if (found == annotations.end() || valid) return;
    out.push_back(fmt::format("metadata.annotations[{}]: Invalid value: {}: {}", name,
                              Excerpt(json(found->second)), rule));
  };
  for (const char* name : {kEvaluatorInCluster, kWaitForEvaluator, kDataShards}) {
    check(name, Option(name, true) == Option(name, false),
          "must be \"true\" or \"false\"; it is ignored");
  }
  for (const char* name : {kMinWorkers, kMaxWorkers}) {
    check(name, WorkersIn(*this, name).has_value(),
          fmt::format("must be a number from 1 to {}; it is ignored", kMostReplicas));
  }
  check(
      kMinWorkers, !WorkersIn(*this, kMinWorkers) || min_workers(),
      fmt::format("the names of so many workers would be longer than {} characters; it is ignored",
                  kLongestName));
  const int least = min_workers().value_or(1);
  const int most = WorkersIn(*this, kMaxWorkers).value_or(kMostReplicas);
  check(kMaxWorkers, least <= most, "must not be less than min-workers; min-workers is used");
  return out;
}

bool ManagedByUs(const kube::Object& object) {
  const json& managed_by = FieldAt(object.fields(), {"spec", "runPolicy", "managedBy"});
  return managed_by.is_null() || managed_by == kManagedByUs;
}

Result<TFJob> ParseTFJob(const kube::Object& object) {
  const std::vector<std::string> mistakes = Validate(object);
  if (mistakes.size() == 1) return InvalidArgument("{}", mistakes.front());
  if (!mistakes.empty()) return InvalidArgument("[{}]", fmt::join(mistakes, ", "));
  if (object.uid().empty()) {
    return InvalidArgument("metadata.uid: Required value: must be set by the API server");
  }
  const json& spec = FieldAt(object.fields(), {"spec"});
  TFJob out{.key = object.key(),
            .uid = object.uid(),
            .deleting = object.deleting(),
            .annotations = object.annotations()};
  for (const auto& [role, given] : FieldAt(spec, {"tfReplicaSpecs"}).items()) {
    const auto type = ParseReplicaType(role);
    if (!type) continue;
    auto parsed = ParseReplicaSpec(given);
    if (!parsed.ok()) {
      return InvalidArgument("spec.tfReplicaSpecs[{}].{}", NameOf(*type),
                             parsed.status().message());
    }
    out.replicas[*type] = std::move(*parsed);
  }
  // Each worker may hold the last shards of the data.
  out.all_workers_must_succeed =
      TextIn(spec, "successPolicy") == "AllWorkers" || out.has_data_shards();
  out.dynamic_workers = FlagIn(spec, "enableDynamicWorker");
  ParseRunPolicy(FieldAt(spec, {"runPolicy"}), out);
  LimitWorkers(out);
  out.status = ParseStatus(FieldAt(object.fields(), {"status"}));
  return out;
}

TFJob ParseRejected(const kube::Object& object) {
  TFJob out{.key = object.key(),
            .uid = object.uid(),
            .deleting = object.deleting(),
            .annotations = object.annotations()};
  ParseRunPolicy(FieldAt(object.fields(), {"spec", "runPolicy"}), out);
  out.status = ParseStatus(FieldAt(object.fields(), {"status"}));
  return out;
}

std::vector<std::string> Validate(const kube::Object& object) {
  std::vector<std::string> out;
  if (!IsDns1035Label(object.name())) {
    out.push_back(fmt::format(
        "metadata.name: Invalid value: \"{}\": should match: a DNS-1035 label must consist of "
        "lower "
        "case alphanumeric characters or '-', start with an alphabetic character, and end with an "
        "alphanumeric character",
        object.name()));
  }
  const json& managed_by = FieldAt(object.fields(), {"spec", "runPolicy", "managedBy"});
  if (managed_by.is_string() && managed_by != kManagedByUs &&
      managed_by != "kueue.x-k8s.io/multikueue") {
    out.push_back(
        fmt::format("spec.runPolicy.managedBy: Unsupported value: {}: supported values: "
                    "\"kueue.x-k8s.io/multikueue\", \"{}\"",
                    Excerpt(managed_by), kManagedByUs));
  }
  const json& specs = FieldAt(object.fields(), {"spec", "tfReplicaSpecs"});
  if (!specs.is_object()) {
    out.emplace_back("spec.tfReplicaSpecs: Required value: must be required");
    return out;
  }
  ValidateSpecs(object.name(), specs, out);
  return out;
}

const json* TrainingContainer(const json& pod_spec) {
  for (const json& container : ListAt(pod_spec, {"containers"})) {
    if (TextIn(container, "name") == kContainerName) return &container;
  }
  return nullptr;
}

std::string ReplicaName(const std::string& job, ReplicaType type, int index) {
  std::string name = fmt::format("{}-{}-{}", job, LowerNameOf(type), index);
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

}  // namespace edl::reconciler
