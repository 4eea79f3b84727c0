#pragma once

#include <string_view>

namespace edl {

// Whether `text` is valid UTF-8: no overlong forms, no surrogates, no code point above U+10FFFF.
bool IsUtf8(std::string_view text);

}  // namespace edl
