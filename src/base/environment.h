#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace edl {

// The value of an environment variable of this process; empty: it is not set.
std::string Variable(const char* name);

// All environment variables of this process.
std::map<std::string, std::string> Environment();

// The file that this process was started from; `name` where /proc does not say.
std::filesystem::path ThisProgram(const char* name = "elasticdl");

}  // namespace edl
