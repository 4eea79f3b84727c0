#pragma once

#include <string_view>

namespace edl {

// Whether `text` is UTF-8 as JSON wants it: no overlong forms, no surrogates, nothing past
// U+10FFFF.
bool IsUtf8(std::string_view text);

}  // namespace edl
