#pragma once

namespace edl::ps {

// The version in the head of a part, docs/formats/checkpoint.md.
inline constexpr int kLaneCheckpointFormat = 1;

}  // namespace edl::ps
