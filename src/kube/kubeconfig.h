#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl::kube {

// A file's name, or its content right there; the content wins where both are given.
struct FileOrData {
  std::filesystem::path file;  // resolved against the folder of the kubeconfig
  std::optional<std::string> data;

  bool empty() const { return file.empty() && !data; }
};

// A program that makes credentials.
struct ExecPlugin {
  std::string command;  // with a slash: a path; without: looked for in PATH
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
  std::string auth_provider;  // the name of one; nobody serves them any more
  std::optional<ExecPlugin> exec;
};

struct KubeconfigContext {
  std::string cluster;
  std::string user;
  std::string ns;
};

// What kubectl reads, of one file or of several.
struct Kubeconfig {
  std::string current_context;
  std::map<std::string, KubeconfigCluster> clusters;
  std::map<std::string, KubeconfigUser> users;
  std::map<std::string, KubeconfigContext> contexts;

  // Adds what `later` has and this has not, name by name: the first file wins.
  void Merge(const Kubeconfig& later);
};

// Reads no other file. `file` is named in errors, and relative paths start from its folder.
// InvalidArgument: not a kubeconfig; the message has the line.
Result<Kubeconfig> ParseKubeconfig(std::string_view text, const std::filesystem::path& file);

}  // namespace edl::kube
