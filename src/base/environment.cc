#include "base/environment.h"

#include <cstdlib>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace edl {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::map<std::string, std::string> Environment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const size_t at = text.find('='); at != std::string_view::npos) {
      environment.emplace(text.substr(0, at), text.substr(at + 1));
    }
  }
  return environment;
}

std::filesystem::path ThisProgram(const char* name) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path(name) : program;
}

}  // namespace edl
