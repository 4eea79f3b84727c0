#include "cli/dry_run.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "job/model_command.h"
#include "job/role.h"

namespace edl::cli {
namespace {

// In the order of the table, which is the order of help and docs/flags.md.
using nlohmann::ordered_json;

ordered_json ValueOf(const FlagValues& flags, const FlagSpec& spec) {
  if (spec.type == FlagType::kInt) return flags.Int(spec.name);
  if (spec.type != FlagType::kString) return flags.Bool(spec.name);
  return flags.ShownText(spec.name);
}

}  // namespace

std::string DryRun(const FlagValues& flags, const job::JobSpec& spec) {
  ordered_json out;
  out["job_name"] = spec.job_name;
  out["backend"] = "local";
  out["command"] = job::WorkerCommand(spec);
  for (const job::Role role : job::kReplicaRoles) {
    out["replicas"][std::string(NameOf(role))] = spec.CountOf(role);
  }
  out["envs"] = ordered_json::object();
  for (const auto& [name, value] : spec.envs) out["envs"][name] = "***";
  out["volumes"] = ordered_json::array();
  for (const job::Volume& volume : spec.volumes) {
    ordered_json mount = {{"host_path", volume.host_path}, {"mount_path", volume.mount_path}};
    if (volume.type != job::HostPathType::kAny) mount["type"] = NameOf(volume.type);
    if (!volume.sub_path.empty()) mount["sub_path"] = volume.sub_path;
    out["volumes"].push_back(std::move(mount));
  }
  for (const FlagSpec& flag : flags.table().specs()) {
    if (flag.hidden) continue;
    ordered_json& entry = out["flags"][flag.name];
    entry["value"] = ValueOf(flags, flag);
    entry["source"] = NameOf(flags.source(flag.name));
    if (!flag.scope.empty()) entry["scope"] = flag.scope;
  }
  return Dump(out, 2) + "\n";
}

}  // namespace edl::cli
