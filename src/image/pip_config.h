#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace edl::image {

// Settings of pip by name: "index-url", "trusted-host".
using PipSettings = std::map<std::string, std::string>;

// The settings for `pip install` in a configuration file of pip: the sections [global] and
// [install]. Lines that cannot be parsed are ignored, because pip itself reports them.
PipSettings ReadPipConfig(std::string_view text);

// The settings in the environment: $PIP_INDEX_URL and others.
PipSettings PipSettingsOf(const std::function<const char*(const char*)>& variable);

// A configuration file for pip in a build. Settings with paths of the host are left out, because
// these do not exist in the build. `certificates` is the file of certificates in the build; may be
// empty.
std::string WritePipConfig(const PipSettings& settings, const std::string& certificates);

// The settings as environment variables.
std::map<std::string, std::string> PipVariables(const PipSettings& settings);

}  // namespace edl::image
