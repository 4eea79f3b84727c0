#pragma once

#include <string>

#include "base/flags.h"

namespace edl {

// The help text of all flags: the common ones first, then by group.
std::string FlagHelp(const FlagTable& table);

// The same as Markdown: one table for each group.
std::string FlagMarkdown(const FlagTable& table);

}  // namespace edl
