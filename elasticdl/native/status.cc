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

// The same for record files.
const char* RecordExceptionOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kOutOfRange:
    case Code::kUnimplemented:
      return "RecordValueError";
    case Code::kNotFound:
      return "RecordNotFoundError";
    case Code::kPermissionDenied:
      return "RecordPermissionError";
    default:
      return "RecordError";
  }
}

[[noreturn]] void RaiseAs(const char* name, const Status& failure) {
  const nb::object type = nb::module_::import_(kModule).attr(name);
  nb::object error = type(failure.message());
  error.attr("code") = std::string(NameOf(failure.code()));
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

void Define(nb::module_& module, const char* name, const nb::object& bases, const char* doc) {
  const std::string full_name = std::string("elasticdl.") + name;
  module.attr(name) =
      nb::steal(PyErr_NewExceptionWithDoc(full_name.c_str(), doc, bases.ptr(), nullptr));
}

// Defines an exception of our own, and subclasses of it that derive from a built-in one too.
class Family {
 public:
  Family(nb::module_& module, const char* name, const char* doc) : module_(module) {
    Define(module_, name, nb::borrow(PyExc_Exception), doc);
    base_ = module_.attr(name);
    base_.attr("code") = "UNKNOWN";
  }

  void Add(const char* name, PyObject* also, const char* doc) {
    Define(module_, name, nb::make_tuple(base_, nb::borrow(also)), doc);
  }

 private:
  nb::module_& module_;
  nb::object base_;
};

}  // namespace

void DefineExceptions(nb::module_& module) {
  Family parameters(
      module, "ParameterError",
      "A call of a parameter server failed; `code` is the reason, such as \"DATA_LOSS\".");
  parameters.Add("ParameterValueError", PyExc_ValueError, "INVALID_ARGUMENT or OUT_OF_RANGE.");
  parameters.Add("ParameterTimeoutError", PyExc_TimeoutError, "DEADLINE_EXCEEDED.");
  parameters.Add("ParameterConnectionError", PyExc_ConnectionError,
                 "UNAVAILABLE: a server could not be reached within the timeout.");
  parameters.Add("ParameterPermissionError", PyExc_PermissionError,
                 "UNAUTHENTICATED: the token is wrong. PERMISSION_DENIED: a folder cannot be "
                 "written or read.");
  Family records(
      module, "RecordError",
      "Record files cannot be read or written; `code` is the reason: \"DATA_LOSS\" for a "
      "damaged file, \"FAILED_PRECONDITION\" for one that was changed.");
  records.Add("RecordValueError", PyExc_ValueError,
              "INVALID_ARGUMENT, OUT_OF_RANGE or UNIMPLEMENTED.");
  records.Add("RecordNotFoundError", PyExc_FileNotFoundError, "NOT_FOUND.");
  records.Add("RecordPermissionError", PyExc_PermissionError, "PERMISSION_DENIED.");
}

void Raise(const Status& failure) { RaiseAs(ExceptionOf(failure.code()), failure); }

void RaiseRecordError(const Status& failure) {
  RaiseAs(RecordExceptionOf(failure.code()), failure);
}

}  // namespace edl::native
