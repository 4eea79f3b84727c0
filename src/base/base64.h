#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace edl {

// Base64 of RFC 4648, section 4. Decoding ignores white space, because files wrap their lines.
// InvalidArgument: any other character outside the alphabet, or incomplete input.
Result<std::string> DecodeBase64(std::string_view text);
std::string EncodeBase64(std::string_view bytes);

}  // namespace edl
