#include "base/log.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/chrono.h>
#include <unistd.h>

namespace edl {
namespace {

// The one process-wide setting: a log call must work in any thread at any time.
std::atomic<LogLevel> g_level{LogLevel::kInfo};  // NOLINT

constexpr std::array<const char*, 5> kLevelNames = {"DEBUG", "INFO", "WARNING", "ERROR",
                                                    "CRITICAL"};

// Escapes control characters, so that a message is always one line: a newline in a name or an error
// must not start another log line.
std::string OneLine(std::string_view message) {
  std::string line;
  line.reserve(message.size());
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      line += c;
    } else if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += ' ';
    } else {
      line += fmt::format("\\x{:02x}", byte);
    }
  }
  return line;
}

}  // namespace

void SetLogLevel(LogLevel level) { g_level = level; }
bool LogEnabled(LogLevel level) { return level >= g_level.load(std::memory_order_relaxed); }

void WriteLog(LogLevel level, const char* file, int line, const char* function,
              std::string_view message) {
  const auto now = std::chrono::system_clock::now();
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  const char* slash = std::strrchr(file, '/');
  const std::string text =
      fmt::format("[{:%Y-%m-%d %H:%M:%S},{:03}] [{}] [{}:{}:{}] {}\n",
                  fmt::localtime(std::chrono::system_clock::to_time_t(now)), millis,
                  kLevelNames.at(static_cast<size_t>(level)), slash != nullptr ? slash + 1 : file,
                  line, function, OneLine(message));
  // A failure to write the log cannot be reported anywhere.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace edl
