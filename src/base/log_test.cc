#include "base/log.h"

#include <gtest/gtest.h>

namespace edl {
namespace {

TEST(Log, WritesAMessageWithControlCharactersOnOneLine) {
  testing::internal::CaptureStderr();

  LOG_ERROR("worker 1 failed: {}", "bad\n[2026-01-01] [ERROR] forged\r\x1b[2J\ttab");

  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 1);
  EXPECT_NE(written.find("bad\\n[2026-01-01] [ERROR] forged\\x0d\\x1b[2J tab\n"), std::string::npos)
      << written;
}

}  // namespace
}  // namespace edl
