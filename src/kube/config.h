#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/status.h"
#include "kube/kubeconfig.h"

namespace edl::kube {

// The identity of the caller. At most one method is used, in the order of the fields.
struct Credentials {
  std::optional<ExecPlugin> exec;
  std::string client_certificate;    // PEM
  std::string client_key;            // PEM
  std::filesystem::path token_file;  // read periodically: a pod's token is replaced hourly
  std::string token;
  std::string username;
  std::string password;
  Impersonation as;
};

// The API server to call, and the identity to call it with.
struct Config {
  std::string server;  // "https://10.0.0.1:6443", possibly with a path; no trailing slash
  std::string certificate_authority;  // PEM; empty: the system's authorities
  // The file from which the authority is read again whenever token_file is, because both are
  // replaced in a pod; empty: it is not read again.
  std::filesystem::path certificate_authority_file;
  std::string ca_source;        // where the authority comes from, for messages; may be empty
  std::string tls_server_name;  // empty: the host of `server`
  std::string proxy_url;        // empty: as the environment variables configure
  bool insecure_skip_tls_verify = false;
  std::string ns = "default";
  Credentials credentials;
  std::string context;  // name in the kubeconfig; empty in a pod
  std::string source;   // for messages: "context 'kind' of /home/me/.kube/config"
};

// Where LoadConfig searches. LoadConfig does not read environment variables itself.
struct ConfigSources {
  std::filesystem::path file;  // from a flag; if set, nothing else is searched
  std::string kubeconfig;      // $KUBECONFIG: files, separated by ':'
  std::filesystem::path home;
  std::string context;       // empty: the current-context of the file
  std::string service_host;  // $KUBERNETES_SERVICE_HOST: set in every pod
  std::string service_port;  // $KUBERNETES_SERVICE_PORT
  std::filesystem::path service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};

// Returns the first configuration found: the file of the flag, the files of $KUBECONFIG,
// ~/.kube/config, the service account of this pod. NotFound: no cluster is configured, which may be
// intended. Every other error is a mistake in a configuration; the message names the file, the
// entry and the remedy.
Result<Config> LoadConfig(const ConfigSources& sources);

}  // namespace edl::kube
