#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace edl {

// RFC 4648, section 4. White space between the characters is skipped, as files wrap their lines;
// anything else that does not belong there is InvalidArgument.
Result<std::string> DecodeBase64(std::string_view text);
std::string EncodeBase64(std::string_view bytes);

}  // namespace edl
