#include "cli/cluster_spec_file.h"

#include <filesystem>
#include <map>
#include <system_error>

#include <nlohmann/json.hpp>

#include "backend/cluster_spec.h"
#include "backend/object_patch.h"
#include "base/json.h"
#include "job/role.h"

namespace edl::cli {
namespace {

using nlohmann::json;

std::string LastLineOf(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

// Runs adapt_pods.py and returns what it wrote: each object before and after.
Result<json> Adapt(const Platform& platform, const std::string& file, const json& templates) {
  const Result<ProgramEnd> end =
      platform.run({.command = {"python3", "-c", std::string(kAdaptPods), file},
                    .environment = {},
                    .input = Dump(templates)});
  if (!end.ok()) {
    return FailedPrecondition("cannot run python3, which evaluates the file: {}",
                              end.status().message());
  }
  Result<json> answer = ParseJson(end->output);
  if (end->code != 0 || !answer.ok() || !answer->is_object()) {
    return FailedPrecondition("python3 failed with exit code {}: {}", end->code,
                              LastLineOf(end->stderr_text));
  }
  if (answer->contains("error")) {
    return InvalidArgument("{}", ScalarText(answer->at("error")).value());
  }
  return answer;
}

// The two versions of one object. InvalidArgument: there are not two.
Result<json> PatchOf(const json& pair) {
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_object() || !pair[1].is_object()) {
    return InvalidArgument(
        "python3 did not write two versions of each object; the file may print to standard output, "
        "which it must not");
  }
  return backend::MakePatch(pair[0], pair[1]);
}

Result<std::string> Run(const Platform& platform, const std::string& file,
                        const backend::Templates& templates, std::string_view spec_json) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return InvalidArgument("the file does not exist");
  }
  json input = {{"pods", json::object()}, {"service", templates.service}};
  for (const auto& [role, pod] : templates.pods) input["pods"][std::string(NameOf(role))] = pod;
  EDL_ASSIGN_OR_RETURN(const json adapted, Adapt(platform, file, input));
  std::map<job::Role, json> patches;
  for (const auto& [role, pod] : templates.pods) {
    const std::string name(NameOf(role));
    EDL_ASSIGN_OR_RETURN(json patch, PatchOf(adapted.value("pods", json::object())[name]));
    EDL_RETURN_IF_ERROR(
        backend::CheckPodPatch(patch, pod).Within(fmt::format("with_pod, of a {}", name)));
    patches[role] = std::move(patch);
  }
  json service = json::object();
  if (adapted.contains("service")) {
    EDL_ASSIGN_OR_RETURN(service, PatchOf(adapted["service"]));
    EDL_RETURN_IF_ERROR(backend::CheckServicePatch(service).Within("with_service"));
  }
  return backend::ClusterSpec::WithPatches(spec_json, patches, service);
}

}  // namespace

Result<std::string> RunClusterSpec(const Platform& platform, const std::string& file,
                                   const backend::Templates& templates,
                                   std::string_view spec_json) {
  Result<std::string> spec = Run(platform, file, templates, spec_json);
  if (!spec.ok()) return spec.status().Within("--cluster_spec=" + file);
  return spec;
}

}  // namespace edl::cli
