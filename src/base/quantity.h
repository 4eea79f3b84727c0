#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

// Amounts of resources as Kubernetes writes them: "250m", "1.5", "16Gi", "1e3".

namespace edl {

// An amount from an API server, in thousandths, rounded up; at most 2^53 of them. InvalidArgument:
// it is not an amount.
Result<int64_t> ParseQuantity(std::string_view text);

// The same for people: "1.5", or "15.6Gi" of bytes.
enum class QuantityUnit { kOne, kByte };
std::string ShowQuantity(int64_t thousandths, QuantityUnit unit);

// Bytes as a user writes them in a flag: a positive whole number with a unit from K to Ei
// ("4096Mi", "2G"), exact. InvalidArgument: anything else. A number without a unit is not accepted,
// since it is more often a mistake than a count of bytes.
Result<int64_t> ParseByteCount(std::string_view text);

}  // namespace edl
