#include "checkpoint/checkpoint_folder.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/status_matchers.h"
#include "base/testing/synced_files.h"
#include "checkpoint/manifest.h"

namespace edl::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr job::LedgerId kOurs(0xc0ffee);
constexpr job::LedgerId kOthers(0xc0ffef);

TEST(CheckpointName, IsReadAsItWasWritten) {
  const CheckpointName name{.version = 9375, .ledger = kOurs, .save = 12};
  EXPECT_EQ(name.ToText(), "version-9375.0000000000c0ffee.12");
  EXPECT_EQ(CheckpointName::FromText(name.ToText()), name);
}

TEST(CheckpointName, IsNotWhatLooksLikeOne) {
  for (const char* text : {"", "version-", "version-1.2", "version-1.c0ffee.2", "version-1..2",
                           "version-1.0000000000c0ffee.", "version-1.0000000000c0ffee.2.3",
                           "version-01.0000000000c0ffee.2", "other-1.0000000000c0ffee.2"}) {
    EXPECT_EQ(CheckpointName::FromText(text), std::nullopt) << text;
  }
}

class CheckpointFolder : public testing::Test {
 protected:
  CheckpointFolder() { fs::create_directories(folder_); }
  ~CheckpointFolder() override { fs::remove_all(folder_); }

  std::string Make(job::LedgerId ledger, int64_t save) const {
    std::string name = CheckpointName{.version = 7, .ledger = ledger, .save = save}.ToText();
    fs::create_directories(folder_ / name);
    std::ofstream(folder_ / name / "part-0000-of-0001") << "parameters";
    return name;
  }
  std::vector<std::string> Left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / fmt::format("checkpoints-{}", getpid());
};

// Two jobs of the same name, or two ledgers of one job, must not share a folder.
TEST_F(CheckpointFolder, IsMadeOnce) {
  const fs::path folder = folder_ / "job" / "version-1.0000000000c0ffee.1";
  EXPECT_OK(MakeCheckpointFolder(folder));
  EXPECT_THAT(MakeCheckpointFolder(folder), StatusIs(Code::kAlreadyExists));
}

TEST_F(CheckpointFolder, IsSyncedWithTheFoldersThatNameIt) {
  const fs::path job = fs::canonical(folder_) / "job";
  const fs::path folder = job / "version-1.0000000000c0ffee.1";
  Synced().clear();

  ASSERT_OK(MakeCheckpointFolder(folder));
  EXPECT_THAT(Synced(), ElementsAre(job.parent_path().string(), job.string()));
  Synced().clear();

  ASSERT_OK(WriteManifest(folder, {}));
  EXPECT_THAT(Synced(), ElementsAre(HasSubstr("manifest.json"), folder.string(), job.string()));
}

TEST_F(CheckpointFolder, LosesOnlyWhatItsOwnLedgerForgot) {
  const std::string named = Make(kOurs, 1);
  const std::string orphan = Make(kOurs, 2);
  const std::string begun = Make(kOurs, 9);
  const std::string others = Make(kOthers, 2);
  fs::create_directories(folder_ / "version-7.2");
  fs::create_directories(folder_ / "mine");

  EXPECT_THAT(RemoveOrphans(folder_, kOurs, {named}, 9), UnorderedElementsAre(orphan));

  EXPECT_THAT(Left(), UnorderedElementsAre(named, begun, others, "version-7.2", "mine"));
}

TEST_F(CheckpointFolder, MayBeMissing) {
  EXPECT_THAT(RemoveOrphans(folder_ / "none", kOurs, {}, 9), IsEmpty());
}

}  // namespace
}  // namespace edl::checkpoint
