#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl::kube {

// A file name or inline content. If both are given, the content is used.
struct FileOrData {
  std::filesystem::path file;  // relative paths are resolved against the folder of the kubeconfig
  std::optional<std::string> data;

  bool empty() const { return file.empty() && !data; }
};

// A credential plugin: a program that writes an ExecCredential.
struct ExecPlugin {
  std::string command;  // with a slash: a path; otherwise searched in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string api_version;  // client.authentication.k8s.io/v1 or .../v1beta1
  std::string install_hint;
  bool provide_cluster_info = false;
  bool needs_terminal = false;  // interactiveMode: Always
};

// Impersonate-* headers.
struct Impersonation {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
};

struct KubeconfigCluster {
  std::string server;
  std::string tls_server_name;
  std::string proxy_url;
  FileOrData certificate_authority;
  bool insecure_skip_tls_verify = false;
};

struct KubeconfigUser {
  std::string token;
  std::filesystem::path token_file;
  std::string username;
  std::string password;
  FileOrData client_certificate;
  FileOrData client_key;
  Impersonation as;
  std::string auth_provider;  // name; removed from Kubernetes in 1.26
  std::optional<ExecPlugin> exec;
};

struct KubeconfigContext {
  std::string cluster;
  std::string user;
  std::string ns;
};

// The content of one or several merged kubeconfig files.
struct Kubeconfig {
  std::string current_context;
  std::map<std::string, KubeconfigCluster> clusters;
  std::map<std::string, KubeconfigUser> users;
  std::map<std::string, KubeconfigContext> contexts;

  // Adds the entries of `later` whose names are missing here: the first file wins.
  void Merge(const Kubeconfig& later);
};

// Parses `text` without reading other files. `file` appears in errors, and relative paths start
// from its folder. InvalidArgument: the text is not a kubeconfig; the message contains the line.
Result<Kubeconfig> ParseKubeconfig(std::string_view text, const std::filesystem::path& file);

}  // namespace edl::kube
