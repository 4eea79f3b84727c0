#include "metrics/documents.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/status_matchers.h"

namespace edl::metrics {
namespace {

namespace fs = std::filesystem;

// With $UPDATE_GOLDEN, writes the files instead: tools/metrics_files.
TEST(Documents, OfTheRepositoryAreThoseThatTheTablesMake) {
  for (const Document& document : MakeDocuments()) {
    const fs::path path = fs::path(EDL_SOURCE_DIR) / document.path;
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
      fs::create_directories(path.parent_path());
      ASSERT_OK(WriteFileAtomically(path, document.text, 0644));
      continue;
    }
    const Result<std::string> text = ReadFile(path);
    ASSERT_OK(text);
    EXPECT_EQ(*text, document.text) << path << " is out of date; run tools/metrics_files";
  }
}

}  // namespace
}  // namespace edl::metrics
