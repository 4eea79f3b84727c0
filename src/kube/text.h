#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace edl::kube {

// As a part of a path or of a query: all but letters, digits and "-._~" becomes %XX.
std::string UrlEncoded(std::string_view text);

// Times as the API writes them: "2026-11-15T10:00:00Z", with or without parts of a second, and with
// an offset from UTC. nullopt: no time.
std::optional<WallTime> ParseTime(const std::string& text);
std::string FormatTime(WallTime time);       // whole seconds
std::string FormatMicroTime(WallTime time);  // microseconds, as leases and events want it

}  // namespace edl::kube
