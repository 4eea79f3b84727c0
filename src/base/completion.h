#pragma once

#include <string>
#include <vector>

#include "base/flags.h"

namespace edl {

// One way to go on after the name of a command, for shell completion.
struct CompletedCommand {
  std::string name;  // of one word or two
  std::string summary;
  const FlagTable* flags = nullptr;     // may be null
  std::vector<std::string> words = {};  // that it takes as arguments
  std::string words_from = {};          // a shell command that prints more of them
};

// A script for bash or zsh that completes `program`.
std::string BashCompletion(const std::string& program,
                           const std::vector<CompletedCommand>& commands);
std::string ZshCompletion(const std::string& program,
                          const std::vector<CompletedCommand>& commands);

}  // namespace edl
