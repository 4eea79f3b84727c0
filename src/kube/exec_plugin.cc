#include "kube/exec_plugin.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/file.h"
#include "kube/json_fields.h"
#include "kube/text.h"

namespace edl::kube {
namespace {

using nlohmann::json;

constexpr size_t kMostOutput = size_t{1} << 20;
constexpr std::string_view kVersions[] = {"client.authentication.k8s.io/v1",
                                          "client.authentication.k8s.io/v1beta1"};

// What the plugin is told in $KUBERNETES_EXEC_INFO.
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
  return json{{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", spec}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

void Set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment,
                [&](const std::string& entry) { return entry.starts_with(name + "="); });
  environment.push_back(fmt::format("{}={}", name, value));
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

struct Pipe {
  FileDescriptor out;
  FileDescriptor in;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Unavailable("no pipe: {}", std::strerror(errno));
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Reads both ends until both are closed, so that neither blocks the other.
void Drain(const FileDescriptor& first, std::string& first_text, const FileDescriptor& second,
           std::string& second_text) {
  std::array<pollfd, 2> watched = {pollfd{first.get(), POLLIN, 0}, pollfd{second.get(), POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&first_text, &second_text};
  std::array<char, 4096> buffer{};
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    for (size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      const ssize_t got = read(watched[i].fd, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        watched[i].fd = -1;
      } else if (texts[i]->size() < kMostOutput) {
        texts[i]->append(buffer.data(), static_cast<size_t>(got));
      }
    }
  }
}

Status Failed(const ExecPlugin& plugin, const std::string& why) {
  const std::string hint = plugin.install_hint.empty() ? "" : "\n" + plugin.install_hint;
  return FailedPrecondition("the credential plugin '{}' {}{}", plugin.command, why, hint);
}

struct Ended {
  int code = 0;
  std::string output;
  std::string complaints;
};

Result<Ended> Run(const ExecPlugin& plugin, std::vector<std::string> environment) {
  EDL_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  EDL_ASSIGN_OR_RETURN(Pipe complaints, MakePipe());
  std::vector<std::string> arguments = {plugin.command};
  arguments.insert(arguments.end(), plugin.args.begin(), plugin.args.end());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!plugin.needs_terminal) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, output.in.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, complaints.in.get(), STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, plugin.command.c_str(), &actions, nullptr,
                                 Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Failed(plugin, fmt::format("cannot be run: {}", std::strerror(error)));
  output.in.Close();
  complaints.in.Close();
  Ended ended;
  Drain(output.out, ended.output, complaints.out, ended.complaints);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

}  // namespace

Result<ExecCredential> ParseExecCredential(const std::string& text,
                                           const std::string& api_version) {
  const json in = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!in.is_object() || TextIn(in, "kind") != "ExecCredential") {
    return InvalidArgument("did not write an ExecCredential");
  }
  if (TextIn(in, "apiVersion") != api_version) {
    return InvalidArgument("wrote version '{}', the kubeconfig says '{}'", TextIn(in, "apiVersion"),
                           api_version);
  }
  const auto status = in.find("status");
  if (status == in.end() || !status->is_object()) return InvalidArgument("wrote no status");
  ExecCredential out{.token = TextIn(*status, "token"),
                     .client_certificate = TextIn(*status, "clientCertificateData"),
                     .client_key = TextIn(*status, "clientKeyData")};
  if (out.client_certificate.empty() != out.client_key.empty()) {
    return InvalidArgument("wrote only one of a certificate and its key");
  }
  if (out.token.empty() && out.client_certificate.empty()) {
    return InvalidArgument("wrote neither a token nor a certificate");
  }
  if (const std::string expires = TextIn(*status, "expirationTimestamp"); !expires.empty()) {
    out.expires_at = ParseTime(expires);
    if (!out.expires_at) return InvalidArgument("wrote '{}', which is no time", expires);
  }
  return out;
}

Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const Config& config,
                                     const std::vector<std::string>& environment) {
  if (std::find(std::begin(kVersions), std::end(kVersions), plugin.api_version) ==
      std::end(kVersions)) {
    return Failed(plugin, fmt::format("speaks '{}'; known are {} and {}", plugin.api_version,
                                      kVersions[0], kVersions[1]));
  }
  std::vector<std::string> all = environment;
  for (const auto& [name, value] : plugin.env) Set(all, name, value);
  Set(all, "KUBERNETES_EXEC_INFO", ExecInfo(plugin, config));
  EDL_ASSIGN_OR_RETURN(const Ended ended, Run(plugin, std::move(all)));
  if (ended.code != 0) {
    return Failed(plugin, fmt::format("failed with exit code {}: {}", ended.code,
                                      ended.complaints.substr(0, 1000)));
  }
  auto credential = ParseExecCredential(ended.output, plugin.api_version);
  if (!credential.ok()) return Failed(plugin, credential.status().message());
  return credential;
}

}  // namespace edl::kube
