// Files of testdata/ in old versions, and what Convert makes of them.

#include <cstdlib>
#include <filesystem>

#include "tfjob_convert/convert.h"
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/status_matchers.h"

namespace edl::tfjob_convert {
namespace {

namespace fs = std::filesystem;

fs::path Data(const std::string& name) {
  return fs::path(EDL_SOURCE_DIR) / "src/tfjob_convert/testdata" / name;
}

// Compares with the file, or writes it if $UPDATE_GOLDEN is set.
void ExpectFile(const fs::path& path, const std::string& text) {
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, text, 0644).ok());
    return;
  }
  const Result<std::string> expected = ReadFile(path);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(text, *expected) << path;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, IsConvertedAsExpected) {
  const fs::path file = Data(GetParam());
  const Result<std::string> text = ReadFile(file);
  ASSERT_TRUE(text.ok()) << text.status();
  const Result<Conversion> converted = Convert(*text, JsonOutput::kYaml);
  ASSERT_TRUE(converted.ok()) << converted.status();
  ExpectFile(Data(file.stem().string() + ".v1.yaml"), converted->text);
  std::string notes;
  for (const std::string& note : converted->notes) notes += note + "\n";
  ExpectFile(Data(file.stem().string() + ".notes"), notes);
}

TEST_P(Golden, TheConversionOfTheResultChangesNothing) {
  for (const JsonOutput output : {JsonOutput::kYaml, JsonOutput::kJson}) {
    const Result<std::string> text = ReadFile(Data(GetParam()));
    ASSERT_TRUE(text.ok()) << text.status();
    const Result<Conversion> once = Convert(*text, output);
    ASSERT_TRUE(once.ok()) << once.status();
    const Result<Conversion> twice = Convert(once->text, output);
    ASSERT_TRUE(twice.ok()) << twice.status() << once->text;
    EXPECT_EQ(twice->changed_jobs, 0) << fmt::format("{}", fmt::join(twice->notes, "\n"));
    EXPECT_EQ(twice->text, once->text);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Golden,
                         ::testing::Values("v1alpha1.yaml", "v1alpha2.yaml", "v1beta1.yaml",
                                           "v1beta2.yaml", "v1_misplaced.yaml", "v1.yaml",
                                           "list.json"),
                         [](const auto& file) { return fs::path(file.param).stem().string(); });

}  // namespace
}  // namespace edl::tfjob_convert
