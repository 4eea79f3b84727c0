#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "kube/config.h"

namespace edl::kube {

// What a plugin gave.
struct ExecCredential {
  std::string token;
  std::string client_certificate;  // PEM
  std::string client_key;          // PEM
  std::optional<WallTime> expires_at;
};

// Reads what a plugin wrote. InvalidArgument: not an ExecCredential of that version, or one with
// nothing in it.
Result<ExecCredential> ParseExecCredential(const std::string& text, const std::string& api_version);

// Runs the plugin and waits for it. `environment`: "NAME=value", as this process has it.
// FailedPrecondition: it could not be run, or failed; the message has the plugin's own words and
// its hint on how to install it.
Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const Config& config,
                                     const std::vector<std::string>& environment);

}  // namespace edl::kube
