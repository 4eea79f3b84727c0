#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace edl::image {

// What a build needs of the host to reach what the host reaches: behind a proxy, with certificates
// of its own, by an index of its own.
struct HostSettings {
  std::map<std::string, std::string> proxies;        // by the variable's name: https_proxy
  std::filesystem::path certificates;                // a file of all that are trusted; may be empty
  std::string pip_config;                            // the content of a pip.conf for the build
  std::map<std::string, std::string> pip_variables;  // the same without paths: PIP_INDEX_URL
};

// Where the certificates are during a build: where Debian's own are, and all that reads them looks.
inline constexpr char kBuildCertificates[] = "/etc/ssl/certs/ca-certificates.crt";

// From the environment, and from the configuration files of pip, which it reads.
HostSettings ReadHostSettings(const std::function<const char*(const char*)>& variable);

}  // namespace edl::image
