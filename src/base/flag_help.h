#pragma once

#include <string>

#include "base/flags.h"

namespace edl {

// The flags of a table for a terminal: the common ones first, then by group.
std::string FlagHelp(const FlagTable& table);

// The same as a page: a table for each group.
std::string FlagMarkdown(const FlagTable& table);

}  // namespace edl
