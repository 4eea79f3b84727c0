#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl {

// Compares two secrets in constant time: the time depends only on the lengths, so that a client
// cannot find out by measuring how much of a guess is right.
bool SecretsEqual(std::string_view given, std::string_view expected);

// A new secret: 128 random bits as 32 hexadecimal digits.
std::string NewToken();

// The secret in a file, without trailing newlines. InvalidArgument: the file is empty. Other errors
// are those of ReadFile. Every message names the file.
Result<std::string> ReadSecretFile(const std::filesystem::path& path);

}  // namespace edl
