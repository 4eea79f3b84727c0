#pragma once

#include <nanobind/nanobind.h>

#include "base/status.h"

namespace edl::native {

// Adds the exceptions to the module: ParameterError, whose `code` is the name of a canonical code,
// and subclasses of it that also derive from the matching built-in exception.
void DefineExceptions(nanobind::module_& module);

// Throws the exception of a failure. REQUIRES: the GIL, and a failure.
[[noreturn]] void Raise(const Status& failure);

// Returns the value, or throws the exception of the failure. REQUIRES: the GIL.
inline void OrRaise(const Status& status) {
  if (!status.ok()) Raise(status);
}
template <typename T>
T OrRaise(Result<T> result) {
  if (!result.ok()) Raise(result.status());
  return *std::move(result);
}

}  // namespace edl::native
