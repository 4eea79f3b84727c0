#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/testing/fake_platform.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DataGenTest : public ::testing::Test {
 protected:
  DataGenTest() {
    fs::create_directories(bin_);
    fake_.variables["PATH"] = bin_.string();
  }

  // An interpreter at `path` that prints this to stderr and exits with `code`.
  void Install(const fs::path& path, const std::string& name, const std::string& says, int code) {
    std::ofstream(path) << "x";
    chmod(path.c_str(), 0755);
    fake_.programs[name] = [says, code](const Program& program) -> Result<ProgramEnd> {
      program.on_output(says, OutputStream::kStderr);
      return ProgramEnd{.code = code};
    };
  }
  void InstallPython3(const std::string& says, int code) {
    Install(bin_ / "python3", "python3", says, code);
  }

  FakePlatform fake_;
  const fs::path bin_ = fake_.home() / "bin";
};

TEST_F(DataGenTest, RunsTheGeneratorsWithPython3) {
  InstallPython3("written\n", 0);
  EXPECT_EQ(fake_.Run({"data", "gen", "mnist", "data/mnist", "--fraction=0.1", "--seed=7"}),
            kExitOk)
      << fake_.err();
  EXPECT_THAT(fake_.ran,
              ElementsAre(ElementsAre("python3", "-m", "elasticdl.data_gen", "mnist",
                                      "--fraction=0.1", "--records_per_file=16384", "--seed=7",
                                      "--compression=none", "--", "data/mnist")));
  EXPECT_THAT(fake_.err(), HasSubstr("written"));
}

TEST_F(DataGenTest, PrefersTheInterpreterInTheVariable) {
  InstallPython3("", 0);
  const std::string mine = fake_.home() / "python-mine";
  Install(mine, mine, "", 0);
  fake_.variables["ELASTICDL_PYTHON"] = mine;
  EXPECT_EQ(fake_.Run({"data", "gen", "iris", "out"}), kExitOk) << fake_.err();
  ASSERT_EQ(fake_.ran.size(), 1U);
  EXPECT_EQ(fake_.ran[0][0], mine);
}

TEST_F(DataGenTest, SaysWhatToInstallWithoutAnInterpreter) {
  EXPECT_EQ(fake_.Run({"data", "gen", "iris", "out"}), kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr("cannot find python3, which generates datasets; install "
                                     "Python 3.8 or newer with NumPy"));
  fake_.variables["ELASTICDL_PYTHON"] = "/none/python";
  fake_.ClearOutput();
  EXPECT_EQ(fake_.Run({"data", "gen", "iris", "out"}), kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr("$ELASTICDL_PYTHON=/none/python"));
  EXPECT_THAT(fake_.ran, IsEmpty());
}

TEST_F(DataGenTest, SaysWhereToRunItWithoutThePackage) {
  InstallPython3("python3: No module named elasticdl\n", 1);
  EXPECT_EQ(fake_.Run({"data", "gen", "iris", "out"}), kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr("could not generate iris in out"));
  EXPECT_THAT(fake_.err(), HasSubstr("run this in the root of a clone"));
}

TEST_F(DataGenTest, ShowsOtherErrorsAsTheyAre) {
  InstallPython3("data_gen: cannot generate iris: disk full\n", 1);
  EXPECT_EQ(fake_.Run({"data", "gen", "iris", "out"}), kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr("could not generate iris in out"));
  EXPECT_THAT(fake_.err(), HasSubstr("disk full"));
  EXPECT_THAT(fake_.err(), Not(HasSubstr("clone")));
}

TEST_F(DataGenTest, RefusesUnknownDatasetsAndFlags) {
  InstallPython3("", 0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"data", "gen", "imagenet", "out"},
       "there is no dataset 'imagenet'; the datasets are mnist"},
      {{"data", "gen", "mnist"}, "an argument is missing; usage: elasticdl data gen NAME OUT"},
      {{"data", "gen", "mnist", "out", "--records_per_file=0"}, "records_per_file"},
      {{"data"}, "'data' needs a second word: one of data gen"},
  };
  for (const auto& [words, message] : cases) {
    fake_.ClearOutput();
    EXPECT_EQ(fake_.Run(words), kExitUsage);
    EXPECT_THAT(fake_.err(), HasSubstr(message));
  }
  EXPECT_THAT(fake_.ran, IsEmpty());
}

TEST_F(DataGenTest, AnInterruptExitsWithTheCodeOfTheSignal) {
  InstallPython3("", 0);
  fake_.programs["python3"] = [](const Program&) {
    return ProgramEnd{.code = 130, .output = "", .stderr_text = "", .interrupted_by = SIGINT};
  };
  EXPECT_EQ(fake_.Run({"data", "gen", "mnist", "out"}), kExitSignalBase + SIGINT);
}

}  // namespace
}  // namespace edl::cli
