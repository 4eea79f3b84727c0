#pragma once

#include <cstdint>

#include <nanobind/nanobind.h>

#include "base/strong_id.h"

namespace nanobind::detail {

// A StrongId is an int in Python.
template <typename Tag, typename Number>
struct type_caster<edl::StrongId<Tag, Number>> {
  using Id = edl::StrongId<Tag, Number>;
  NB_TYPE_CASTER(Id, make_caster<Number>::Name)

  bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
    make_caster<Number> number;
    if (!number.from_python(source, flags, cleanup)) return false;
    value = Id(number.value);
    return true;
  }
  static handle from_cpp(Id id, rv_policy policy, cleanup_list* cleanup) noexcept {
    return make_caster<Number>::from_cpp(id.value(), policy, cleanup);
  }
};

}  // namespace nanobind::detail
