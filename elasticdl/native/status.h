#pragma once

#include <nanobind/nanobind.h>

#include "base/status.h"

namespace edl::native {

// Adds the exceptions to the module: ParameterError and RecordError, whose `code` is the name of a
// canonical code, and subclasses of them that also derive from the matching built-in exception.
void DefineExceptions(nanobind::module_& module);

// Throws the exception of a failure: of a parameter server, or of a record file. REQUIRES: the GIL,
// and a failure.
[[noreturn]] void Raise(const Status& failure);
[[noreturn]] void RaiseRecordError(const Status& failure);

// Returns the value, or throws the exception of the failure. REQUIRES: the GIL.
inline void OrRaise(const Status& status) {
  if (!status.ok()) Raise(status);
}
template <typename T>
T OrRaise(Result<T> result) {
  if (!result.ok()) Raise(result.status());
  return *std::move(result);
}

// The same for record files.
inline void OrRaiseRecordError(const Status& status) {
  if (!status.ok()) RaiseRecordError(status);
}
template <typename T>
T OrRaiseRecordError(Result<T> result) {
  if (!result.ok()) RaiseRecordError(result.status());
  return *std::move(result);
}

}  // namespace edl::native
