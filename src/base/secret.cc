#include "base/secret.h"

#include <random>

#include <fmt/format.h>

#include "base/file.h"

namespace edl {

bool SecretsEqual(std::string_view given, std::string_view expected) {
  if (given.size() != expected.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(expected[i]);
  }
  return difference == 0;
}

std::string NewToken() {
  std::random_device random;
  std::string token;
  for (int part = 0; part < 4; ++part) token += fmt::format("{:08x}", random());
  return token;
}

Result<std::string> ReadSecretFile(const std::filesystem::path& path) {
  EDL_ASSIGN_OR_RETURN(std::string secret, ReadFile(path));
  while (secret.ends_with('\n') || secret.ends_with('\r')) secret.pop_back();
  if (secret.empty()) return InvalidArgument("{} holds no token: the file is empty", path.string());
  return secret;
}

}  // namespace edl
