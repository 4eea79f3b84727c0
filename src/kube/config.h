#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/status.h"
#include "kube/kubeconfig.h"

namespace edl::kube {

// Who calls. At most one way is used, in the order of the fields.
struct Credentials {
  std::optional<ExecPlugin> exec;
  std::string client_certificate;    // PEM
  std::string client_key;            // PEM
  std::filesystem::path token_file;  // read again and again: a pod's token is replaced hourly
  std::string token;
  std::string username;
  std::string password;
  Impersonation as;
};

// Which API server, and as whom.
struct Config {
  std::string server;  // "https://10.0.0.1:6443", perhaps with a path, without a last /
  std::string certificate_authority;  // PEM; empty: those that the system trusts
  std::string ca_source;              // for people: where that is; empty: nobody said
  std::string tls_server_name;        // empty: the server's
  std::string proxy_url;              // empty: as the environment says
  bool insecure_skip_tls_verify = false;
  std::string ns = "default";
  Credentials credentials;
  std::string context;  // the kubeconfig's; empty: there is none
  std::string source;   // for people: "context 'kind' of /home/me/.kube/config"
};

// Where to look, handed in: this reads no environment by itself.
struct ConfigSources {
  std::filesystem::path file;  // what a flag says; nothing else is looked at then
  std::string kubeconfig;      // $KUBECONFIG: files, separated by ':'
  std::filesystem::path home;
  std::string context;       // empty: the file's current one
  std::string service_host;  // $KUBERNETES_SERVICE_HOST: set in every pod
  std::string service_port;  // $KUBERNETES_SERVICE_PORT
  std::filesystem::path service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};

// The first that there is of: the flag's file, those of $KUBECONFIG, ~/.kube/config, the pod that
// this runs in. NotFound: no cluster is configured, which is no mistake. Any other error is one,
// and names the file, the entry and the way out.
Result<Config> LoadConfig(const ConfigSources& sources);

}  // namespace edl::kube
