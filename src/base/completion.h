#pragma once

#include <string>
#include <vector>

#include "base/flags.h"

namespace edl {

// A subcommand for shell completion.
struct CompletedCommand {
  std::string name;  // one word or two
  std::string summary;
  const FlagTable* flags = nullptr;     // may be null
  std::vector<std::string> words = {};  // arguments that it accepts
  std::string words_from = {};          // a shell command that prints further arguments
};

// A completion script for `program`, for bash or zsh.
std::string BashCompletion(const std::string& program,
                           const std::vector<CompletedCommand>& commands);
std::string ZshCompletion(const std::string& program,
                          const std::vector<CompletedCommand>& commands);

}  // namespace edl
