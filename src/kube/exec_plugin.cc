#include "kube/exec_plugin.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/run_program.h"
#include "kube/text.h"

namespace edl::kube {
namespace {

using nlohmann::json;

constexpr std::string_view kVersions[] = {"client.authentication.k8s.io/v1",
                                          "client.authentication.k8s.io/v1beta1"};

// The value of $KUBERNETES_EXEC_INFO.
std::string ExecInfo(const ExecPlugin& plugin, const Config& config) {
  json spec = {{"interactive", plugin.needs_terminal && isatty(STDIN_FILENO) == 1}};
  if (plugin.provide_cluster_info) {
    json cluster = {{"server", config.server},
                    {"insecure-skip-tls-verify", config.insecure_skip_tls_verify}};
    if (!config.tls_server_name.empty()) cluster["tls-server-name"] = config.tls_server_name;
    if (!config.proxy_url.empty()) cluster["proxy-url"] = config.proxy_url;
    if (!config.certificate_authority.empty()) {
      cluster["certificate-authority-data"] = EncodeBase64(config.certificate_authority);
    }
    spec["cluster"] = std::move(cluster);
  }
  return Dump(json{{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", spec}});
}

void Set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment,
                [&](const std::string& entry) { return entry.starts_with(name + "="); });
  environment.push_back(fmt::format("{}={}", name, value));
}

Status Failed(const ExecPlugin& plugin, const std::string& why) {
  const std::string hint = plugin.install_hint.empty() ? "" : "\n" + plugin.install_hint;
  return FailedPrecondition("credential plugin '{}': {}{}", plugin.command, why, hint);
}

Result<ProgramEnd> Run(const ExecPlugin& plugin, std::vector<std::string> environment) {
  Program program{.command = {plugin.command}, .environment = std::move(environment)};
  program.command.insert(program.command.end(), plugin.args.begin(), plugin.args.end());
  if (!plugin.needs_terminal) program.input = "";
  Result<ProgramEnd> ended = RunProgram(std::move(program));
  if (!ended.ok()) return Failed(plugin, "cannot be started: " + ended.status().message());
  return ended;
}

}  // namespace

Result<ExecCredential> ParseExecCredential(const std::string& text,
                                           const std::string& api_version) {
  const json in = ReadJson(text);
  if (!in.is_object() || TextIn(in, "kind") != "ExecCredential") {
    return InvalidArgument("the output is not an ExecCredential");
  }
  if (TextIn(in, "apiVersion") != api_version) {
    return InvalidArgument("the output has version '{}', the kubeconfig names '{}'",
                           TextIn(in, "apiVersion"), api_version);
  }
  const auto status = in.find("status");
  if (status == in.end() || !status->is_object())
    return InvalidArgument("the output has no status");
  ExecCredential out{.token = TextIn(*status, "token"),
                     .client_certificate = TextIn(*status, "clientCertificateData"),
                     .client_key = TextIn(*status, "clientKeyData")};
  if (out.client_certificate.empty() != out.client_key.empty()) {
    return InvalidArgument("the output has only one of clientCertificateData and clientKeyData");
  }
  if (out.token.empty() && out.client_certificate.empty()) {
    return InvalidArgument("the output has neither a token nor a certificate");
  }
  if (const std::string expires = TextIn(*status, "expirationTimestamp"); !expires.empty()) {
    out.expires_at = ParseTime(expires);
    if (!out.expires_at)
      return InvalidArgument("the expirationTimestamp '{}' is not an RFC 3339 time", expires);
  }
  return out;
}

Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const Config& config,
                                     const std::vector<std::string>& environment) {
  if (std::find(std::begin(kVersions), std::end(kVersions), plugin.api_version) ==
      std::end(kVersions)) {
    return Failed(plugin, fmt::format("unsupported apiVersion '{}'; use {} or {}",
                                      plugin.api_version, kVersions[0], kVersions[1]));
  }
  std::vector<std::string> all = environment;
  for (const auto& [name, value] : plugin.env) Set(all, name, value);
  Set(all, "KUBERNETES_EXEC_INFO", ExecInfo(plugin, config));
  EDL_ASSIGN_OR_RETURN(const ProgramEnd ended, Run(plugin, std::move(all)));
  if (ended.code != 0) {
    return Failed(plugin, fmt::format("failed with exit code {}: {}", ended.code,
                                      ended.stderr_text.substr(0, 1000)));
  }
  auto credential = ParseExecCredential(ended.output, plugin.api_version);
  if (!credential.ok()) return Failed(plugin, credential.status().message());
  return credential;
}

}  // namespace edl::kube
