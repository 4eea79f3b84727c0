#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/testing/fake_platform.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kOld = R"(# An old job.
apiVersion: kubeflow.org/v1beta1
kind: TFJob
metadata: {name: iris}
spec:
  cleanPodPolicy: All
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      template: {spec: {containers: [{name: tensorflow, image: example/iris}]}}
)";
constexpr std::string_view kNew = R"(apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: iris
spec:
  runPolicy:
    cleanPodPolicy: All
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: tensorflow
              image: example/iris
)";
constexpr std::string_view kNotes =
    "document 1, TFJob iris: apiVersion kubeflow.org/v1beta1 -> kubeflow.org/v1\n"
    "document 1, TFJob iris: spec.cleanPodPolicy -> spec.runPolicy.cleanPodPolicy\n"
    "elasticdl: the comments in changed documents are lost\n";

class TfJobConvertTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, std::string_view text, unsigned mode = 0644) {
    const fs::path path = fake_.home() / name;
    EXPECT_TRUE(WriteFileAtomically(path, text, mode).ok());
    return path.string();
  }
  static std::string Read(const fs::path& path) { return ReadFile(path).value(); }

  FakePlatform fake_;
};

TEST_F(TfJobConvertTest, PrintsTheResultAndWhatChanged) {
  const std::string file = Write("old.yaml", kOld);
  EXPECT_EQ(fake_.Run({"tfjob", "convert", file}), kExitOk);
  EXPECT_EQ(fake_.out(), kNew);
  EXPECT_EQ(fake_.err(), kNotes);
  EXPECT_EQ(Read(file), kOld);
}

TEST_F(TfJobConvertTest, ReadsStandardInput) {
  fake_.input = kOld;
  EXPECT_EQ(fake_.Run({"tfjob", "convert", "-"}), kExitOk) << fake_.err();
  EXPECT_EQ(fake_.out(), kNew);
  fake_.ClearOutput();
  EXPECT_EQ(fake_.Run({"tfjob", "convert", "-", "--in_place"}), kExitUsage);
  EXPECT_THAT(fake_.err(), HasSubstr("--in_place needs the name of a file, not '-'"));
}

TEST_F(TfJobConvertTest, InPlaceKeepsModeAndLink) {
  const std::string file = Write("old.yaml", kOld, 0640);
  const fs::path link = fake_.home() / "link.yaml";
  fs::create_symlink("old.yaml", link);
  EXPECT_EQ(fake_.Run({"tfjob", "convert", "--in_place", link.string()}), kExitOk) << fake_.err();
  EXPECT_EQ(fake_.out(), "");
  EXPECT_EQ(fake_.err(), kNotes);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(Read(file), kNew);
  EXPECT_EQ(static_cast<unsigned>(fs::status(file).permissions()), 0640U);
}

TEST_F(TfJobConvertTest, InPlaceKeepsJson) {
  const std::string file =
      Write("old.json", R"({"kind": "TFJob", "apiVersion": "kubeflow.org/v1beta1", "spec": {}})");
  EXPECT_EQ(fake_.Run({"tfjob", "convert", "-i", file}), kExitOk) << fake_.err();
  EXPECT_THAT(Read(file), StartsWith("{\n  \"kind\": \"TFJob\",\n  \"apiVersion\": "
                                     "\"kubeflow.org/v1\",\n"));
}

TEST_F(TfJobConvertTest, PrintsWhatNeedsNothingUnchanged) {
  const std::string with_comment = fmt::format("# mine\n{}", kNew);
  const std::string file = Write("new.yaml", with_comment);
  EXPECT_EQ(fake_.Run({"tfjob", "convert", file}), kExitOk);
  EXPECT_EQ(fake_.out(), with_comment);
  EXPECT_EQ(fake_.err(),
            "elasticdl: nothing to change in " + file + ": TFJobs are kubeflow.org/v1 already\n");
  fake_.ClearOutput();
  fake_.input = "kind: Service\n";
  EXPECT_EQ(fake_.Run({"tfjob", "convert", "-"}), kExitOk);
  EXPECT_EQ(fake_.out(), "kind: Service\n");
  EXPECT_EQ(fake_.err(), "elasticdl: there is no TFJob in standard input\n");
}

TEST_F(TfJobConvertTest, WritesNothingAfterAnError) {
  const std::string text = fmt::format("{}---\nkind: TFJob\napiVersion: kubeflow.org/v9\n", kOld);
  const std::string file = Write("wrong.yaml", text);
  for (const char* flag : {"--in_place=false", "--in_place"}) {
    fake_.ClearOutput();
    EXPECT_EQ(fake_.Run({"tfjob", "convert", file, flag}), kExitFailed);
    EXPECT_EQ(fake_.out(), "");
    EXPECT_EQ(fake_.err(), "elasticdl: " + file +
                               ": document 2, line 14, TFJob: there is no version "
                               "kubeflow.org/v9; the versions are v1alpha1, v1alpha2, v1beta1, "
                               "v1beta2, v1\n");
    EXPECT_EQ(Read(file), text);
  }
  fake_.ClearOutput();
  EXPECT_EQ(fake_.Run({"tfjob", "convert", (fake_.home() / "none.yaml").string()}), kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr("none.yaml"));
}

TEST_F(TfJobConvertTest, IsInHelpAndCompletion) {
  EXPECT_EQ(fake_.Run({"tfjob", "--help"}), kExitOk);
  EXPECT_THAT(fake_.out(), HasSubstr("tfjob convert"));
  fake_.ClearOutput();
  EXPECT_EQ(fake_.Run({"help", "tfjob", "convert"}), kExitOk);
  EXPECT_THAT(fake_.out(), HasSubstr("elasticdl tfjob convert tfjob.yaml --in_place"));
  fake_.ClearOutput();
  EXPECT_EQ(fake_.Run({"completion", "bash"}), kExitOk);
  EXPECT_THAT(fake_.out(), HasSubstr("in_place"));
  fake_.ClearOutput();
  EXPECT_EQ(fake_.Run({"tfjob"}), kExitUsage);
  EXPECT_THAT(fake_.err(), HasSubstr("'tfjob' needs a second word: one of tfjob convert"));
}

}  // namespace
}  // namespace edl::cli
