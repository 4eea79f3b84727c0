#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "kube/config.h"

namespace edl::kube {

// The output of a credential plugin.
struct ExecCredential {
  std::string token;
  std::string client_certificate;  // PEM
  std::string client_key;          // PEM
  std::optional<WallTime> expires_at;
};

// Parses the output of a plugin. InvalidArgument: the text is not an ExecCredential of that
// version, or contains no credential.
Result<ExecCredential> ParseExecCredential(const std::string& text, const std::string& api_version);

// Runs the plugin and waits for it to exit. `environment`: "NAME=value" strings of this process.
// FailedPrecondition: the plugin could not be started, or failed; the message contains its stderr
// and its install hint.
Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const Config& config,
                                     const std::vector<std::string>& environment);

}  // namespace edl::kube
