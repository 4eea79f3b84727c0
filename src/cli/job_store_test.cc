#include "cli/job_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/testing/status_matchers.h"
#include "cli/testing/fake_platform.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

mode_t ModeOf(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777U;
}

TEST(JobStore, CreatesAFolderThatOnlyItsOwnerCanRead) {
  FakePlatform fake;
  const JobStore store(fake.home() / "new" / "home");

  const Result<JobFolder> folder = store.Create("iris", "{}", {.name = "iris"});

  ASSERT_OK(folder);
  for (const fs::path& path : {fake.home() / "new" / "home", folder->path(), folder->logs()}) {
    EXPECT_EQ(ModeOf(path), 0700U) << path;
  }
  for (const char* file : {"token", "spec.json", "status.json"}) {
    EXPECT_EQ(ModeOf(folder->path() / file), 0600U) << file;
  }
  EXPECT_EQ(folder->ReadToken()->size(), 64U);
  EXPECT_EQ(*folder->ReadSpec(), "{}");
  EXPECT_EQ(folder->ReadView()->name, "iris");
}

TEST(JobStore, GivesEveryJobItsOwnToken) {
  FakePlatform fake;
  fake.AddJob({.name = "one"});
  fake.AddJob({.name = "two"});

  EXPECT_NE(*fake.store().Find("one")->ReadToken(), *fake.store().Find("two")->ReadToken());
}

TEST(JobStore, RejectsATakenNameAndLeavesNoTemporaryFolder) {
  FakePlatform fake;
  fake.AddJob({.name = "iris"});

  const Result<JobFolder> second = fake.store().Create("iris", "other", {});

  EXPECT_THAT(second, StatusIs(Code::kAlreadyExists));
  EXPECT_NE(*fake.store().Find("iris")->ReadSpec(), "other");
  EXPECT_EQ(std::distance(fs::directory_iterator(fake.home() / "jobs"), {}), 1);
}

TEST(JobStore, ListsJobsByName) {
  FakePlatform fake;
  EXPECT_THAT(*fake.store().List(), IsEmpty());
  fake.AddJob({.name = "b"});
  fake.AddJob({.name = "a"});
  fs::create_directory(fake.home() / "jobs" / ".c.XXXX");

  EXPECT_THAT(*fake.store().List(), ElementsAre("a", "b"));
}

TEST(JobStore, SuggestsSimilarNamesForAMissingJob) {
  FakePlatform fake;
  fake.AddJob({.name = "iris"});

  EXPECT_THAT(fake.store().Find("irsi").status().message(), HasSubstr("did you mean iris?"));
  EXPECT_THAT(fake.store().Find(".."), StatusIs(Code::kNotFound));
}

TEST(JobStore, RemovesTheWholeFolder) {
  FakePlatform fake;
  fake.AddJob({.name = "iris"});
  fake.AddLog("iris", "master", "x");

  EXPECT_OK(fake.store().Remove(*fake.store().Find("iris")));

  EXPECT_TRUE(fs::is_empty(fake.home() / "jobs"));
}

}  // namespace
}  // namespace edl::cli
