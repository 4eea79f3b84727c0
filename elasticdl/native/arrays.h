#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "wire/frame.h"

namespace edl::native {

// Arrays from Python, used without a copy. Arrays of other types or layouts are rejected.
using Ids = nanobind::ndarray<const int64_t, nanobind::c_contig, nanobind::device::cpu>;
using Floats = nanobind::ndarray<const float, nanobind::c_contig, nanobind::device::cpu>;

std::vector<size_t> ShapeOf(const Ids& ids);

// How many arrays exist. Shared by the client, which reports it, and the arrays, which may outlive
// the client.
using ArrayCount = std::shared_ptr<std::atomic<int64_t>>;

// Makes a NumPy array that owns the memory. REQUIRES: the GIL.
nanobind::object ArrayOfFloats(wire::Buffer memory, const std::vector<size_t>& shape,
                               const ArrayCount& count);
nanobind::object ArrayOfInt32(wire::Buffer memory, const std::vector<size_t>& shape,
                              const ArrayCount& count);
nanobind::object ArrayOfInt64(wire::Buffer memory, const std::vector<size_t>& shape,
                              const ArrayCount& count);
// Makes a NumPy array with a copy of the ids. REQUIRES: the GIL.
nanobind::object ArrayOfIds(const std::vector<int64_t>& ids);

}  // namespace edl::native
