#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace edl::kube {

// Percent-encodes all characters except letters, digits and "-._~".
std::string UrlEncoded(std::string_view text);

// Parses RFC 3339 ("2026-11-15T10:00:00Z"), with or without fractions of a second and with any UTC
// offset. nullopt: the text is not a time.
std::optional<WallTime> ParseTime(const std::string& text);
std::string FormatTime(WallTime time);       // whole seconds
std::string FormatMicroTime(WallTime time);  // microseconds, as leases and events require

}  // namespace edl::kube
