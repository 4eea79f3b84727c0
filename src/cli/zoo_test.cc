#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/testing/fake_platform.h"
#include "cli/verbs.h"
#include "image/dockerfile.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class ZooTest : public ::testing::Test {
 protected:
  ZooTest() {
    fs::create_directories(folder_);
    fake_.platform().folder = folder_;
    fs::create_directories(bin_);
    fake_.variables["PATH"] = bin_.string();
    fake_.variables["PIP_CONFIG_FILE"] = "/dev/null";
  }

  void Write(const std::string& name, const std::string& text = "x") const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  std::string Read(const std::string& name) const {
    const Result<std::string> text = ReadFile(folder_ / name);
    return text.ok() ? *text : "(there is none)";
  }
  // A program in $PATH that does this.
  void Install(const std::string& name,
               const std::function<Result<ProgramEnd>(const Program&)>& does) {
    const fs::path file = bin_ / name;
    std::ofstream(file) << "x";
    chmod(file.c_str(), 0755);
    fake_.programs[name] = does;
  }
  void InstallBuildah(const std::string& says, int code) {
    Install("buildah", [says, code](const Program& program) -> Result<ProgramEnd> {
      program.on_output(says, OutputStream::kStdout);
      return ProgramEnd{.code = code};
    });
  }
  void Wheels(const std::string& folder) const {
    for (const std::string_view name : image::kZooPackages) {
      Write(fmt::format("{}/{}-2.0.0-py3-none-any.whl", folder, name));
    }
  }

  FakePlatform fake_;
  const fs::path folder_ = fake_.home() / "here";
  const fs::path bin_ = fake_.home() / "bin";
};

TEST_F(ZooTest, InitWritesADockerfileForThisFolder) {
  Write("requirements.txt");
  ASSERT_EQ(fake_.Run({"zoo", "init"}), kExitOk) << fake_.err();
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("FROM python:3.11-bookworm\n"));
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("COPY requirements.txt /tmp/requirements.txt\n"));
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("COPY . /model_zoo\n"));
  EXPECT_THAT(Read(".dockerignore"), HasSubstr("\n.git\n"));
  EXPECT_THAT(fake_.out(), HasSubstr("elasticdl zoo build --image=NAME ."));
}

TEST_F(ZooTest, InitKeepsAnExistingDockerfile) {
  Write("Dockerfile", "FROM mine\n");
  Write(".dockerignore", "mine\n");
  EXPECT_EQ(fake_.Run({"zoo", "init"}), kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr("--force"));
  EXPECT_EQ(Read("Dockerfile"), "FROM mine\n");
  EXPECT_EQ(fake_.Run({"zoo", "init", "--force"}), kExitOk);
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("FROM python:3.11-bookworm\n"));
  EXPECT_EQ(Read(".dockerignore"), "mine\n");
}

TEST_F(ZooTest, InitCopiesFilesFromOutsideOfTheFolder) {
  Wheels("../dist");
  Write("../spec.py", "cluster = 1\n");
  ASSERT_EQ(fake_.Run({"zoo", "init", "--local_pkg_dir=../dist", "--cluster_spec=../spec.py"}),
            kExitOk)
      << fake_.err();
  EXPECT_TRUE(fs::exists(folder_ / "wheels/elasticdl_client-2.0.0-py3-none-any.whl"));
  EXPECT_EQ(Read("spec.py"), "cluster = 1\n");
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("COPY wheels/*.whl /tmp/wheels/\n"));
  // They are not in the layer of the models.
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("AS models\nCOPY . /model_zoo\n"));
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("RUN rm -rf '/model_zoo/wheels'\n"));
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("COPY --from=models /model_zoo /model_zoo\n"));
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("COPY spec.py /cluster_spec/spec.py\n"));
}

TEST_F(ZooTest, InitRefersToFilesInTheFolder) {
  Wheels("build/here");
  Write("zoo/requirements.txt");
  ASSERT_EQ(fake_.Run({"zoo", "init", "--local_pkg_dir=./build/../build/here", "--model_zoo=zoo/",
                       "--user=1000", "--base_image=gcr.io/a/b:c",
                       "--extra_pypi_index=https://x.example"}),
            kExitOk)
      << fake_.err();
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("COPY build/here/*.whl /tmp/wheels/\n"));
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("COPY zoo/requirements.txt"));
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("USER 1000\n"));
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("FROM gcr.io/a/b:c\n"));
  EXPECT_FALSE(fs::exists(folder_ / "wheels"));
}

TEST_F(ZooTest, InitUsesTheWheelsOfTheCloneAroundTheFolder) {
  Write("../tools/wheels");
  Write("../src/base/version.h");
  Write("../dist/elasticai_api-2.0.0-py3-none-any.whl");
  ASSERT_EQ(fake_.Run({"zoo", "init"}), kExitOk) << fake_.err();
  EXPECT_THAT(Read("Dockerfile"), Not(HasSubstr("/tmp/wheels")));  // not all are there
  Wheels("../dist");
  ASSERT_EQ(fake_.Run({"zoo", "init", "--force"}), kExitOk) << fake_.err();
  EXPECT_THAT(fake_.out(), HasSubstr("from the wheels in " + (fake_.home() / "dist").string()));
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("--find-links=/tmp/wheels \\\n    elasticai_api=="));
  EXPECT_THAT(Read("Dockerfile"), HasSubstr("'elasticdl==2.0.0; python_version < \"3.12\"'"));
  Write("../dist/elasticdl-2.0.0-cp312-abi3-manylinux_2_36_x86_64.whl");
  ASSERT_EQ(fake_.Run({"zoo", "init", "--force"}), kExitOk) << fake_.err();
  EXPECT_THAT(Read("Dockerfile"), HasSubstr(" elasticdl==2.0.0 "));
}

TEST_F(ZooTest, InitReportsErrorsAndWritesNothing) {
  Wheels("old");
  fs::rename(folder_ / "old/elasticai_api-2.0.0-py3-none-any.whl",
             folder_ / "old/elasticai_api-1.0.0-py3-none-any.whl");
  Write("few/elasticai_api-2.0.0-py3-none-any.whl");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--model_zoo=none", "--model_zoo=none is not a folder"},
      {"--model_zoo=..", "outside of the current folder"},
      {"--base_image=Python", "upper-case letters are not allowed"},
      {"--base_image=a b", "--base_image"},
      {"--extra_pypi_index=a b", "--extra_pypi_index='a b' must be one word"},
      {"--user=a\nRUN b", "must be one word"},
      {"--local_pkg_dir=none", "--local_pkg_dir=none: No such file"},
      {"--local_pkg_dir=few", "there is no wheel of elasticdl 2.0.0"},
      {"--local_pkg_dir=old", "there is no wheel of elasticai_api 2.0.0"},
      {"--cluster_spec=none.py", "--cluster_spec=none.py is not a file"},
      {"--model_zo", "--model_zo"},
  };
  for (const auto& [flag, message] : cases) {
    fake_.ClearOutput();
    EXPECT_EQ(fake_.Run({"zoo", "init", flag}), kExitUsage) << flag;
    EXPECT_THAT(fake_.err(), HasSubstr(message));
    EXPECT_FALSE(fs::exists(folder_ / "Dockerfile")) << flag;
    EXPECT_FALSE(fs::exists(folder_ / ".dockerignore")) << flag;
  }
}

TEST_F(ZooTest, BuildRunsTheBuilderAndShowsItsOutput) {
  Write("Dockerfile", "FROM x\nARG SOURCE_DATE_EPOCH=1\n");
  fake_.variables["PIP_INDEX_URL"] = "https://index.example";
  std::string pip_config;
  Install("buildah", [&](const Program& program) -> Result<ProgramEnd> {
    program.on_output("STEP 1/2: FROM x\n", OutputStream::kStdout);
    program.on_output("Trying to pull\n", OutputStream::kStderr);
    const std::string mount =
        *std::find_if(program.command.begin(), program.command.end(),
                      [](const std::string& word) { return word.ends_with("/etc/pip.conf:ro"); });
    pip_config = *ReadFile(mount.substr(9, mount.find(':') - 9));
    return ProgramEnd{};
  });
  fake_.programs["git"] = [](const Program&) { return ProgramEnd{.output = "12ab-dirty\n"}; };

  ASSERT_EQ(fake_.Run({"zoo", "build", "--image=gcr.io/p/elasticdl:mnist", "."}), kExitOk)
      << fake_.err();

  EXPECT_THAT(fake_.out(), StartsWith("STEP 1/2: FROM x\nbuilt gcr.io/p/elasticdl:mnist with "));
  EXPECT_EQ(fake_.err(), "Trying to pull\n");
  EXPECT_EQ(pip_config, "[global]\nindex-url = https://index.example\n");
  const std::vector<std::string>& command = fake_.ran.back();
  EXPECT_THAT(command, Contains("--timestamp=1"));
  EXPECT_THAT(command, Contains("org.opencontainers.image.version=2.0.0"));
  EXPECT_THAT(command, Contains("org.opencontainers.image.revision=12ab-dirty"));
  EXPECT_THAT(command, Contains((folder_ / "Dockerfile").string()));
}

TEST_F(ZooTest, BuildAcceptsAnotherDockerfileAndArguments) {
  Write("docker/Dockerfile.data", "FROM x\nRUN pip install y\n");
  InstallBuildah("", 0);
  ASSERT_EQ(fake_.Run({"zoo", "build", "--image=a", "-f", "docker/Dockerfile.data",
                       "--build_args=A=1,B=x y", "--no_cache"}),
            kExitOk)
      << fake_.err();
  const std::vector<std::string>& command = fake_.ran.back();
  EXPECT_THAT(command, Contains("A=1"));
  EXPECT_THAT(command, Contains("B=x y"));
  EXPECT_THAT(command, Contains("--no-cache"));
  EXPECT_THAT(command, Contains((folder_ / "docker/Dockerfile.data").string()));
  EXPECT_THAT(command, Not(Contains(StartsWith("--timestamp"))));
}

TEST_F(ZooTest, BuildReportsTheStepThatFailed) {
  Write("Dockerfile", "FROM x\n");
  InstallBuildah(
      "STEP 2/3: RUN pip install -r /tmp/requirements.txt\nERROR: No matching distribution\n", 125);
  EXPECT_EQ(fake_.Run({"zoo", "build", "--image=a", "."}), kExitFailed);
  EXPECT_EQ(fake_.err(),
            "elasticdl: buildah could not build a: step 2/3, RUN pip install -r "
            "/tmp/requirements.txt: No matching distribution\n");
  InstallBuildah("STEP 1/3: FROM none\nError: creating build container: unable to copy\n", 125);
  fake_.ClearOutput();
  EXPECT_EQ(fake_.Run({"zoo", "build", "--image=a", "."}), kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr("step 1/3, FROM none: creating build container"));
  EXPECT_THAT(fake_.err(), HasSubstr("--base_image=NAME"));
}

TEST_F(ZooTest, BuildReportsWhatIsMissing) {
  EXPECT_EQ(fake_.Run({"zoo", "build", "--image=a", "."}), kExitUsage);
  EXPECT_THAT(fake_.err(), HasSubstr("`elasticdl zoo init` writes it"));
  Write("Dockerfile", "FROM x\n");
  fake_.ClearOutput();
  EXPECT_EQ(fake_.Run({"zoo", "build", "--image=a", "."}), kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr("none of buildah, podman, docker is in $PATH"));
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"zoo", "build", "."}, "an image needs a name"},
      {{"zoo", "build", "--image=A", "."}, "--image: 'A' is not an image name"},
      {{"zoo", "build", "--image=a", "none"}, "none is not a folder"},
      {{"zoo", "build", "--image=a", "--builder=kaniko", "."}, "'buildah', 'podman', 'docker'"},
      {{"zoo", "build", "--image=a", "--build_args=1=2", "."}, "1"},
      {{"zoo", "push"}, "an argument is missing; usage: elasticdl zoo push NAME"},
      {{"zoo", "push", "A"}, "upper-case letters are not allowed"},
      {{"zoo"}, "zoo init, zoo build, zoo push"},
      {{"zoo", "biuld"}, "there is no verb 'zoo biuld'; did you mean zoo init, zoo build"},
  };
  for (const auto& [words, message] : cases) {
    fake_.ClearOutput();
    EXPECT_EQ(fake_.Run(words), kExitUsage);
    EXPECT_THAT(fake_.err(), HasSubstr(message));
  }
  EXPECT_THAT(fake_.ran, Not(Contains(Contains("build"))));
}

TEST_F(ZooTest, BuildLoadsIntoALocalCluster) {
  Write("Dockerfile", "FROM x\n");
  InstallBuildah("", 0);
  fake_.context = "kind-demo";
  Install("kind", [](const Program&) { return ProgramEnd{}; });
  ASSERT_EQ(fake_.Run({"zoo", "build", "--image=a:b", "--load", "."}), kExitOk) << fake_.err();
  const std::vector<std::string>& load = fake_.ran.back();
  ASSERT_EQ(load.size(), 6U);
  EXPECT_THAT(fake_.ran.at(fake_.ran.size() - 2),
              ElementsAre("buildah", "push", "--quiet", "a:b",
                          "docker-archive:" + load[3] + ":docker.io/library/a:b"));
  EXPECT_THAT(load, ElementsAre("kind", "load", "image-archive", load[3], "--name", "demo"));
  EXPECT_FALSE(fs::exists(fs::path(load[3]).parent_path())) << "nothing is left behind";
  EXPECT_THAT(fake_.out(), HasSubstr("loaded docker.io/library/a:b into the kind cluster demo\n"));
}

TEST_F(ZooTest, BuildReportsAMissingClusterBeforeItBuilds) {
  Write("Dockerfile", "FROM x\n");
  InstallBuildah("", 0);
  EXPECT_EQ(fake_.Run({"zoo", "build", "--image=a", "--load", "."}), kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr("--load: no cluster is configured"));
  EXPECT_THAT(fake_.ran, Not(Contains(Contains("buildah"))));
}

TEST_F(ZooTest, PushExplainsHowToLogIn) {
  InstallBuildah("Error: pushing image: unauthorized: authentication required\n", 125);
  EXPECT_EQ(fake_.Run({"zoo", "push", "gcr.io/p/a:b"}), kExitFailed);
  EXPECT_EQ(fake_.err(),
            "elasticdl: buildah could not push gcr.io/p/a:b to gcr.io: pushing image: "
            "unauthorized: authentication required\n  to log in: buildah login gcr.io\n");
  InstallBuildah("Writing manifest\n", 0);
  EXPECT_EQ(fake_.Run({"zoo", "push", "gcr.io/p/a:b"}), kExitOk);
  EXPECT_THAT(fake_.out(), HasSubstr("Writing manifest\npushed gcr.io/p/a:b\n"));
}

TEST_F(ZooTest, AnInterruptedBuildExitsWithTheCodeOfTheSignal) {
  Write("Dockerfile", "FROM x\n");
  Install("buildah", [](const Program&) {
    return ProgramEnd{.code = 130, .output = "", .stderr_text = "", .interrupted_by = SIGINT};
  });
  EXPECT_EQ(fake_.Run({"zoo", "build", "--image=a", "."}), kExitSignalBase + SIGINT);
  EXPECT_THAT(fake_.err(), HasSubstr("interrupted"));
}

TEST_F(ZooTest, HelpListsVerbsOfTwoWords) {
  EXPECT_EQ(fake_.Run({"zoo", "--help"}), kExitOk);
  EXPECT_THAT(fake_.out(), HasSubstr("zoo push"));
  EXPECT_THAT(fake_.out(), Not(HasSubstr("ledger")));
  fake_.ClearOutput();
  EXPECT_EQ(fake_.Run({"help", "zoo", "build"}), kExitOk);
  EXPECT_THAT(fake_.out(), HasSubstr("usage: elasticdl zoo build --image=NAME"));
  fake_.ClearOutput();
  EXPECT_EQ(fake_.Run({"zoo", "init", "--help"}), kExitOk);
  EXPECT_THAT(fake_.out(), HasSubstr("--local_pkg_dir=PATH"));
}

}  // namespace
}  // namespace edl::cli
