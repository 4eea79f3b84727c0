#include "image/host_settings.h"

#include <array>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "image/pip_config.h"

namespace edl::image {
namespace {

namespace fs = std::filesystem;
using Variable = std::function<const char*(const char*)>;

std::string Value(const Variable& variable, const char* name) {
  const char* value = variable(name);
  return value == nullptr ? "" : value;
}

// The configuration files that pip reads, the one with the highest priority first.
std::vector<fs::path> PipConfigFiles(const Variable& variable) {
  const fs::path home = Value(variable, "HOME");
  const std::string config = Value(variable, "XDG_CONFIG_HOME");
  const std::string named = Value(variable, "PIP_CONFIG_FILE");
  if (named == "/dev/null") return {};
  std::vector<fs::path> files;
  if (!named.empty()) files.emplace_back(named);
  if (!home.empty()) {
    files.push_back((config.empty() ? home / ".config" : fs::path(config)) / "pip/pip.conf");
    files.push_back(home / ".pip/pip.conf");
  }
  files.emplace_back("/etc/pip.conf");
  return files;
}

PipSettings ReadPip(const Variable& variable) {
  PipSettings settings = PipSettingsOf(variable);
  for (const fs::path& file : PipConfigFiles(variable)) {
    const Result<std::string> text = ReadFile(file);
    if (text.ok()) settings.merge(ReadPipConfig(*text));
  }
  return settings;
}

// The first file that is configured and exists.
fs::path FindCertificates(const Variable& variable, const PipSettings& pip) {
  const auto in_config = pip.find("cert");
  for (const std::string& said :
       {Value(variable, "PIP_CERT"), Value(variable, "REQUESTS_CA_BUNDLE"),
        Value(variable, "SSL_CERT_FILE"), Value(variable, "CURL_CA_BUNDLE"),
        in_config == pip.end() ? "" : in_config->second}) {
    std::error_code ignored;
    if (!said.empty() && fs::is_regular_file(said, ignored)) return fs::absolute(said, ignored);
  }
  return {};
}

}  // namespace

HostSettings ReadHostSettings(const Variable& variable) {
  HostSettings settings;
  for (const char* name : {"http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "HTTP_PROXY",
                           "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY"}) {
    const std::string value = Value(variable, name);
    if (!value.empty()) settings.proxies[name] = value;
  }
  const PipSettings pip = ReadPip(variable);
  settings.certificates = FindCertificates(variable, pip);
  settings.pip_config =
      WritePipConfig(pip, settings.certificates.empty() ? "" : kBuildCertificates);
  settings.pip_variables = PipVariables(pip);
  return settings;
}

}  // namespace edl::image
