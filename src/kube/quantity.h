#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl::kube {

// An amount of a resource as the API writes it ("250m", "1.5", "16Gi", "1e3"), in thousandths,
// rounded up; at most 2^53 of them. InvalidArgument: it is none.
Result<int64_t> ParseQuantity(std::string_view text);

// The same for people: "1.5", or "15.6Gi" of bytes.
enum class Unit { kOne, kByte };
std::string ShowQuantity(int64_t thousandths, Unit unit);

}  // namespace edl::kube
