#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace edl::image {

// Settings of pip by their names in its configuration: "index-url", "trusted-host".
using PipSettings = std::map<std::string, std::string>;

// What a configuration file of pip says for `pip install`: its sections [global] and [install]. A
// line that is none of its language is left out, as the file is pip's to judge.
PipSettings ReadPipConfig(std::string_view text);

// What $PIP_INDEX_URL and the like say.
PipSettings PipSettingsOf(const std::function<const char*(const char*)>& variable);

// A configuration file for pip in a build, with those of the settings that mean something there: a
// path of the host does not. `certificates`: the file of certificates there; may be empty.
std::string WritePipConfig(const PipSettings& settings, const std::string& certificates);

// The same settings as variables of the environment.
std::map<std::string, std::string> PipVariables(const PipSettings& settings);

}  // namespace edl::image
