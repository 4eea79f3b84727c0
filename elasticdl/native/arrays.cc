#include "elasticdl/native/arrays.h"

#include <cstring>
#include <utility>

namespace edl::native {
namespace {

namespace nb = nanobind;

// The owner of an array's memory.
struct Owned {
  Owned(wire::Buffer its_memory, ArrayCount its_count)
      : memory(std::move(its_memory)), count(std::move(its_count)) {
    ++*count;
  }
  ~Owned() { --*count; }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  wire::Buffer memory;
  ArrayCount count;
};

template <typename Value>
nb::object ArrayOf(wire::Buffer memory, const std::vector<size_t>& shape, const ArrayCount& count) {
  // NumPy rejects a null pointer, even for an empty array.
  if (memory.data() == nullptr) memory.Reshape(wire::kAlignment);
  auto owned = std::make_unique<Owned>(std::move(memory), count);
  std::byte* const data = owned->memory.data();
  const nb::capsule owner(owned.release(),
                          [](void* that) noexcept { delete static_cast<Owned*>(that); });
  return nb::cast(nb::ndarray<nb::numpy, Value>(data, shape.size(), shape.data(), owner),
                  nb::rv_policy::reference);
}

}  // namespace

std::vector<size_t> ShapeOf(const Ids& ids) {
  std::vector<size_t> shape;
  for (size_t i = 0; i < ids.ndim(); ++i) shape.push_back(ids.shape(i));
  return shape;
}

nb::object ArrayOfFloats(wire::Buffer memory, const std::vector<size_t>& shape,
                         const ArrayCount& count) {
  return ArrayOf<float>(std::move(memory), shape, count);
}

nb::object ArrayOfInt32(wire::Buffer memory, const std::vector<size_t>& shape,
                        const ArrayCount& count) {
  return ArrayOf<int32_t>(std::move(memory), shape, count);
}

nb::object ArrayOfInt64(wire::Buffer memory, const std::vector<size_t>& shape,
                        const ArrayCount& count) {
  return ArrayOf<int64_t>(std::move(memory), shape, count);
}

nb::object ArrayOfIds(const std::vector<int64_t>& ids) {
  wire::Buffer memory(ids.size() * sizeof(int64_t));
  if (!ids.empty()) std::memcpy(memory.data(), ids.data(), memory.size());
  return ArrayOfInt64(std::move(memory), {ids.size()}, std::make_shared<std::atomic<int64_t>>(0));
}

}  // namespace edl::native
