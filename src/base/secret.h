#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl {

// Whether two secrets are the same. How long it takes depends on the lengths alone, so a caller who
// guesses cannot measure how much of a guess was right.
bool SecretsEqual(std::string_view given, std::string_view expected);

// The secret in a file, without newlines at its end. InvalidArgument: the file holds nothing else.
// Other errors are those of ReadFile. Each names the file.
Result<std::string> ReadSecretFile(const std::filesystem::path& path);

}  // namespace edl
