#include "elasticdl/native/status.h"

#include <string>

#include <nanobind/stl/string.h>

namespace edl::native {
namespace {

namespace nb = nanobind;

constexpr const char* kModule = "elasticdl._native";

// The exception class of a code.
const char* ExceptionOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kOutOfRange:
      return "ParameterValueError";
    case Code::kDeadlineExceeded:
      return "ParameterTimeoutError";
    case Code::kUnavailable:
      return "ParameterConnectionError";
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
      return "ParameterPermissionError";
    default:
      return "ParameterError";
  }
}

void Define(nb::module_& module, const char* name, const nb::object& bases, const char* doc) {
  const std::string full_name = std::string("elasticdl.") + name;
  module.attr(name) =
      nb::steal(PyErr_NewExceptionWithDoc(full_name.c_str(), doc, bases.ptr(), nullptr));
}

}  // namespace

void DefineExceptions(nb::module_& module) {
  Define(module, "ParameterError", nb::borrow(PyExc_Exception),
         "A call of a parameter server failed; `code` is the reason, such as \"DATA_LOSS\".");
  const nb::object base = module.attr("ParameterError");
  base.attr("code") = "UNKNOWN";
  const auto define = [&](const char* name, PyObject* also, const char* doc) {
    Define(module, name, nb::make_tuple(base, nb::borrow(also)), doc);
  };
  define("ParameterValueError", PyExc_ValueError, "INVALID_ARGUMENT or OUT_OF_RANGE.");
  define("ParameterTimeoutError", PyExc_TimeoutError, "DEADLINE_EXCEEDED.");
  define("ParameterConnectionError", PyExc_ConnectionError,
         "UNAVAILABLE: a server could not be reached within the timeout.");
  define("ParameterPermissionError", PyExc_PermissionError,
         "UNAUTHENTICATED: the token is wrong. PERMISSION_DENIED: a folder cannot be written or "
         "read.");
}

void Raise(const Status& failure) {
  const nb::object type = nb::module_::import_(kModule).attr(ExceptionOf(failure.code()));
  nb::object error = type(failure.message());
  error.attr("code") = std::string(NameOf(failure.code()));
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace edl::native
