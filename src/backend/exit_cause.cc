#include "backend/exit_cause.h"

#include <csignal>
#include <cstring>

#include <fmt/format.h>

namespace edl::backend {

job::ExitCause CauseOfExit(int code) {
  return {.kind = code == 0 ? job::ExitCause::Kind::kSucceeded : job::ExitCause::Kind::kFailed,
          .exit_code = code,
          .message = fmt::format("exit code {}", code)};
}

job::ExitCause CauseOfSignal(int signal) {
  const bool from_outside = signal == SIGKILL || signal == SIGTERM;
  return {.kind = from_outside ? job::ExitCause::Kind::kKilled : job::ExitCause::Kind::kFailed,
          .signal = signal,
          .message = "killed by " + NameOfSignal(signal)};
}

std::string NameOfSignal(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace edl::backend
