#include "image/pip_config.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace edl::image {
namespace {

// The settings that say how to reach indexes. The Dockerfile controls all others.
constexpr std::array<std::string_view, 8> kHandedOn = {
    "index-url", "extra-index-url", "trusted-host", "proxy",
    "timeout",   "default-timeout", "retries",      "no-index"};

// pip reads extra_index_url as extra-index-url.
std::string NameOf(std::string_view text) {
  std::string name(Trim(text));
  for (char& c : name) {
    if (c == '_') c = '-';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

std::string VariableOf(std::string_view name) {
  std::string out = "PIP_";
  for (const char c : name) out += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  return out;
}

}  // namespace

PipSettings ReadPipConfig(std::string_view text) {
  PipSettings settings;
  bool counts = false;          // whether the section is [global] or [install]
  std::string* last = nullptr;  // the value that an indented line continues
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view content = Trim(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (line.front() == ' ' || line.front() == '\t') {
      if (last != nullptr) *last += (last->empty() ? "" : " ") + std::string(content);
      continue;
    }
    last = nullptr;
    if (content.front() == '[') {
      counts = content == "[global]" || content == "[install]";
      continue;
    }
    const size_t mark = content.find_first_of("=:");
    if (!counts || mark == std::string_view::npos) continue;
    last = &settings[NameOf(content.substr(0, mark))];
    *last = Trim(content.substr(mark + 1));
  }
  return settings;
}

PipSettings PipSettingsOf(const std::function<const char*(const char*)>& variable) {
  PipSettings settings;
  for (const std::string_view name : kHandedOn) {
    const char* value = variable(VariableOf(name).c_str());
    if (value != nullptr && *value != '\0') settings[std::string(name)] = value;
  }
  return settings;
}

std::string WritePipConfig(const PipSettings& settings, const std::string& certificates) {
  std::string out = "[global]\n";
  for (const std::string_view name : kHandedOn) {
    const auto found = settings.find(std::string(name));
    // A value of several lines would become several settings here.
    if (found == settings.end() || found->second.find('\n') != std::string::npos) continue;
    out += std::string(name) + " = " + found->second + "\n";
  }
  if (!certificates.empty()) out += "cert = " + certificates + "\n";
  return out;
}

std::map<std::string, std::string> PipVariables(const PipSettings& settings) {
  std::map<std::string, std::string> variables;
  for (const std::string_view name : kHandedOn) {
    const auto found = settings.find(std::string(name));
    if (found != settings.end()) variables[VariableOf(name)] = found->second;
  }
  return variables;
}

}  // namespace edl::image
