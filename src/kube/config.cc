#include "kube/config.h"

#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "kube/text.h"

namespace edl::kube {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Split(const std::string& list) {
  std::vector<fs::path> out;
  size_t from = 0;
  while (from <= list.size()) {
    const size_t to = std::min(list.find(':', from), list.size());
    if (to > from) out.emplace_back(list.substr(from, to - from));
    from = to + 1;
  }
  return out;
}

template <typename Map>
std::string NamesOf(const Map& map) {
  std::string names;
  for (const auto& [name, entry] : map) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none are defined" : "defined: " + names;
}

// Reads a file that a configuration names, so a missing file is a mistake.
Result<std::string> ReadNamed(const fs::path& file) {
  auto text = ReadFile(file);
  if (!text.ok()) return FailedPrecondition("{}", text.status().message());
  return text;
}

Result<std::string> Content(const FileOrData& what) {
  if (what.data) return *what.data;
  if (what.file.empty()) return std::string();
  return ReadNamed(what.file);
}

Result<Credentials> MakeCredentials(const std::string& name, const KubeconfigUser& user) {
  if (!user.auth_provider.empty()) {
    return InvalidArgument(
        "user '{}' uses the auth-provider '{}', which Kubernetes removed in 1.26; replace it by an "
        "exec plugin (the provider's own tool writes the new entry)",
        name, user.auth_provider);
  }
  if (user.exec && user.exec->command.empty()) {
    return InvalidArgument("user '{}': the exec plugin has no command", name);
  }
  Credentials out{.exec = user.exec,
                  .token_file = user.token_file,
                  .token = user.token,
                  .username = user.username,
                  .password = user.password,
                  .as = user.as};
  EDL_ASSIGN_OR_RETURN(out.client_certificate, Content(user.client_certificate));
  EDL_ASSIGN_OR_RETURN(out.client_key, Content(user.client_key));
  if (out.client_certificate.empty() != out.client_key.empty()) {
    return InvalidArgument("user '{}' has only one of client-certificate and client-key; give both",
                           name);
  }
  return out;
}

Result<Config> FromKubeconfig(const Kubeconfig& kubeconfig, const std::string& wanted,
                              const std::string& files) {
  const std::string& name = wanted.empty() ? kubeconfig.current_context : wanted;
  if (name.empty()) {
    return InvalidArgument(
        "{} has no current-context ({}); choose one with `kubectl config "
        "use-context`",
        files, NamesOf(kubeconfig.contexts));
  }
  const auto context = kubeconfig.contexts.find(name);
  if (context == kubeconfig.contexts.end()) {
    return InvalidArgument("{} has no context '{}' ({})", files, name,
                           NamesOf(kubeconfig.contexts));
  }
  const auto cluster = kubeconfig.clusters.find(context->second.cluster);
  if (cluster == kubeconfig.clusters.end()) {
    return InvalidArgument("context '{}' of {} names cluster '{}', which is not defined ({})", name,
                           files, context->second.cluster, NamesOf(kubeconfig.clusters));
  }
  Config out{.server = cluster->second.server,
             .tls_server_name = cluster->second.tls_server_name,
             .proxy_url = cluster->second.proxy_url,
             .insecure_skip_tls_verify = cluster->second.insecure_skip_tls_verify,
             .context = name,
             .source = fmt::format("context '{}' of {}", name, files)};
  while (out.server.ends_with('/')) out.server.pop_back();
  if (!out.server.starts_with("https://") && !out.server.starts_with("http://")) {
    return InvalidArgument("cluster '{}' of {}: the server '{}' does not start with https://",
                           cluster->first, files, cluster->second.server);
  }
  const FileOrData& authority = cluster->second.certificate_authority;
  EDL_ASSIGN_OR_RETURN(out.certificate_authority, Content(authority));
  if (authority.data) {
    out.ca_source =
        fmt::format("certificate-authority-data of cluster '{}' in {}", cluster->first, files);
  } else if (!authority.file.empty()) {
    out.ca_source = fmt::format("certificate-authority {} of cluster '{}' in {}",
                                authority.file.string(), cluster->first, files);
  }
  if (!context->second.ns.empty()) out.ns = context->second.ns;
  if (context->second.user.empty()) return out;  // anonymous
  const auto user = kubeconfig.users.find(context->second.user);
  if (user == kubeconfig.users.end()) {
    return InvalidArgument("context '{}' of {} names user '{}', which is not defined ({})", name,
                           files, context->second.user, NamesOf(kubeconfig.users));
  }
  EDL_ASSIGN_OR_RETURN(out.credentials, MakeCredentials(user->first, user->second));
  return out;
}

// NotFound: no file of the list exists.
Result<Config> FromFiles(const std::vector<fs::path>& files, const std::string& context) {
  Kubeconfig merged;
  std::string names;
  for (const fs::path& file : files) {
    const auto text = ReadFile(file);
    if (text.status().code() == Code::kNotFound) continue;
    if (!text.ok()) return text.status();
    EDL_ASSIGN_OR_RETURN(const Kubeconfig one, ParseKubeconfig(*text, file));
    merged.Merge(one);
    names += (names.empty() ? "" : ":") + file.string();
  }
  if (names.empty()) return NotFound("none of {} kubeconfig file(s) exists", files.size());
  return FromKubeconfig(merged, context, names);
}

Result<Config> FromPod(const ConfigSources& sources) {
  const bool v6 = sources.service_host.find(':') != std::string::npos;
  Config out{.server = fmt::format("https://{}{}{}:{}", v6 ? "[" : "", sources.service_host,
                                   v6 ? "]" : "", sources.service_port),
             .source = "the service account of this pod"};
  out.credentials.token_file = sources.service_account / "token";
  if (const auto token = ReadFile(out.credentials.token_file); !token.ok()) {
    return FailedPrecondition(
        "this pod has no service account token ({}); set automountServiceAccountToken, or name a "
        "kubeconfig",
        token.status().message());
  }
  out.certificate_authority_file = sources.service_account / "ca.crt";
  EDL_ASSIGN_OR_RETURN(out.certificate_authority, ReadNamed(out.certificate_authority_file));
  out.ca_source = out.certificate_authority_file.string();
  if (const auto name = ReadFile(sources.service_account / "namespace"); name.ok()) {
    if (const auto trimmed = Trim(*name); !trimmed.empty()) out.ns = trimmed;
  }
  return out;
}

}  // namespace

Result<Config> LoadConfig(const ConfigSources& sources) {
  if (!sources.file.empty()) {
    auto config = FromFiles({sources.file}, sources.context);
    if (config.status().code() == Code::kNotFound) {
      return FailedPrecondition("the kubeconfig {} does not exist", sources.file.string());
    }
    return config;
  }
  std::vector<fs::path> files = Split(sources.kubeconfig);
  if (files.empty() && !sources.home.empty()) files.push_back(sources.home / ".kube" / "config");
  auto config = FromFiles(files, sources.context);
  if (config.status().code() != Code::kNotFound) return config;
  if (!sources.service_host.empty()) return FromPod(sources);
  return NotFound(
      "no Kubernetes cluster is configured: neither $KUBECONFIG nor {} exists, and this process "
      "does not run in a pod",
      (sources.home / ".kube" / "config").string());
}

}  // namespace edl::kube
