#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace edl {

// The value of an environment variable; empty if it is not set.
std::string Variable(const char* name);

// All environment variables of this process.
std::map<std::string, std::string> Environment();

// The executable of this process; `name` if /proc cannot be read.
std::filesystem::path ThisProgram(const char* name = "elasticdl");

}  // namespace edl
