#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

// Quantities of resources in Kubernetes' notation: "250m", "1.5", "16Gi", "1e3".

namespace edl {

// A quantity in thousandths, rounded up, at most 2^53. InvalidArgument: not a quantity.
Result<int64_t> ParseQuantity(std::string_view text);

// The quantity as users read it: "1.5", or "15.6Gi" for bytes.
enum class QuantityUnit { kOne, kByte };
std::string ShowQuantity(int64_t thousandths, QuantityUnit unit);

// A number of bytes in a flag: a positive whole number with a unit from K to Ei ("4096Mi", "2G"),
// exact. InvalidArgument: anything else. A number without a unit is rejected, because it is more
// often a mistake than a number of bytes.
Result<int64_t> ParseByteCount(std::string_view text);

}  // namespace edl
