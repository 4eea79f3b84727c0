#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace edl {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kCritical };

// Drops messages below `level`. Called once, by main.
void SetLogLevel(LogLevel level);
bool LogEnabled(LogLevel level);

// Writes "[time] [LEVEL] [file:line:function] message" to standard error in one write. Users of the
// original grep for this form. Thread-safe.
void WriteLog(LogLevel level, const char* file, int line, const char* function,
              std::string_view message);

}  // namespace edl

#define EDL_LOG(level, ...)                                                             \
  do {                                                                                  \
    if (::edl::LogEnabled(level)) {                                                     \
      ::edl::WriteLog(level, __FILE__, __LINE__, __func__, ::fmt::format(__VA_ARGS__)); \
    }                                                                                   \
  } while (false)
#define LOG_DEBUG(...) EDL_LOG(::edl::LogLevel::kDebug, __VA_ARGS__)
#define LOG_INFO(...) EDL_LOG(::edl::LogLevel::kInfo, __VA_ARGS__)
#define LOG_WARNING(...) EDL_LOG(::edl::LogLevel::kWarning, __VA_ARGS__)
#define LOG_ERROR(...) EDL_LOG(::edl::LogLevel::kError, __VA_ARGS__)
