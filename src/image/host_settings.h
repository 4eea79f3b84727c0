#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace edl::image {

// Settings of the host that a build needs to reach the network as the host does: proxies,
// additional certificates, the package index.
struct HostSettings {
  std::map<std::string, std::string> proxies;  // by variable: https_proxy
  std::filesystem::path certificates;          // a file of all trusted certificates; may be empty
  std::string pip_config;                      // the content of a pip.conf for the build
  std::map<std::string, std::string>
      pip_variables;  // the same settings as variables: PIP_INDEX_URL
};

// The path of the certificates during a build: the file of Debian, which most programs read.
inline constexpr char kBuildCertificates[] = "/etc/ssl/certs/ca-certificates.crt";

// Reads the settings from the environment and from pip's configuration files. Files that do not
// exist or cannot be read are skipped. `variable` returns the value of an environment variable, or
// null.
HostSettings ReadHostSettings(const std::function<const char*(const char*)>& variable);

}  // namespace edl::image
