#pragma once

namespace edl {

// The version of the binary and of the Python packages.
inline constexpr char kVersion[] = "2.0.0";

}  // namespace edl
