#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/testing/fake_platform.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The verbs for Keras models on this machine. The zoo has one model, tiny/model.py.
class ModelVerbs : public testing::Test {
 protected:
  ModelVerbs() {
    fs::create_directories(zoo_ / "tiny");
    std::ofstream(zoo_ / "tiny" / "model.py") << "custom_model = None\n";
    fake_.next.end_view = {.name = "tiny", .state = job::JobState::kSucceeded, .started_at = 1};
  }
  int Run(const std::string& verb, std::vector<std::string> more) {
    more.insert(more.begin(),
                {verb, "--job_name=tiny", "--backend=local", "--model_zoo=" + zoo_.string()});
    return fake_.Run(more);
  }
  json Spec() { return json::parse(*fake_.store().Find("tiny")->ReadSpec()); }

  FakePlatform fake_;
  const fs::path zoo_ = fake_.home() / "zoo";
};

TEST_F(ModelVerbs, TrainWritesWhatTheMasterNeeds) {
  EXPECT_EQ(Run("train", {"--model_def=tiny.model.custom_model", "--training_data=train"}), kExitOk)
      << fake_.err();

  EXPECT_EQ(Spec()["job_type"], "training");
  EXPECT_EQ(Spec()["num_ps_pods"], 1);
  EXPECT_GT(Spec()["seed"], 0);
  EXPECT_THAT(fake_.out(), Not(HasSubstr("no effect")));
}

TEST_F(ModelVerbs, TrainMakesTheContentOfATokenFileTheTokenOfTheJob) {
  const auto train = [&](const std::string& token) {
    std::ofstream(fake_.home() / "secret") << token;
    return Run("train",
               {"--model_def=tiny.model.custom_model", "--training_data=train",
                "--attach_workers=true", "--token_file=" + (fake_.home() / "secret").string()});
  };
  EXPECT_EQ(train("two words\n"), kExitUsage);
  EXPECT_THAT(fake_.err(), HasSubstr("printable ASCII characters and no spaces"));
  EXPECT_FALSE(fake_.store().Find("tiny").ok()) << "nothing was started";

  EXPECT_EQ(train("open-sesame\n"), kExitOk) << fake_.err();

  EXPECT_EQ(*fake_.store().Find("tiny")->ReadToken(), "open-sesame");
  EXPECT_EQ(Spec()["attach_workers"], true);
}

TEST_F(ModelVerbs, TrainKeepsAGivenSeed) {
  Run("train", {"--model_def=tiny.model.custom_model", "--training_data=train", "--seed=7"});

  EXPECT_EQ(Spec()["seed"], 7);
}

TEST_F(ModelVerbs, NameThePathThatDoesNotExist) {
  EXPECT_EQ(Run("train", {"--model_def=tiny.nothing.custom_model", "--training_data=train"}),
            kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr((zoo_ / "tiny/nothing.py").string() + " does not exist"));
  fake_.ClearOutput();
  EXPECT_EQ(Run("train", {"--model_def=a.b", "--training_data=train", "--model_zoo=/nowhere"}),
            kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr("--model_zoo: /nowhere does not exist"));
  EXPECT_THAT(fake_.started, IsEmpty());
}

TEST_F(ModelVerbs, EvaluateAndPredictRequireTheirData) {
  const std::string model = "--model_def=tiny.model.custom_model";
  EXPECT_EQ(Run("evaluate", {model}), kExitUsage);
  EXPECT_THAT(fake_.err(), HasSubstr("--validation_data is missing: `elasticdl evaluate`"));
  EXPECT_EQ(Run("predict", {model, "--prediction_data=new"}), kExitUsage);
  EXPECT_THAT(fake_.err(), HasSubstr("--checkpoint_dir_for_init is missing: `elasticdl predict`"));
}

TEST_F(ModelVerbs, EvaluateAcceptsFlagsOfTrainingAndSaysSo) {
  EXPECT_EQ(Run("evaluate", {"--model_def=tiny.model.custom_model", "--validation_data=test",
                             "--checkpoint_dir_for_init=/c", "--num_epochs=3"}),
            kExitOk)
      << fake_.err();

  EXPECT_EQ(Spec()["job_type"], "evaluation");
  EXPECT_THAT(fake_.out(), HasSubstr("no effect without training: --num_epochs\n"));
}

TEST_F(ModelVerbs, CheckFindsTheModel) {
  Run("check", {"--model_def=tiny.model.custom_model", "--training_data=train"});
  EXPECT_THAT(fake_.out(), HasSubstr((zoo_ / "tiny/model.py").string()));
  fake_.ClearOutput();

  EXPECT_EQ(Run("check", {"--model_def=tiny.nothing.f", "--training_data=train"}), kExitFailed);
  EXPECT_THAT(fake_.out(), HasSubstr("tiny/nothing.py does not exist"));
}

TEST_F(ModelVerbs, HelpShowsExamples) {
  EXPECT_EQ(fake_.Run({"evaluate", "--help"}), kExitOk);
  EXPECT_THAT(fake_.out(), HasSubstr("examples:\n  elasticdl evaluate --job_name=mnist-eval"));
}

TEST_F(ModelVerbs, DryRunShowsTheCommandOfWorkers) {
  EXPECT_EQ(
      Run("train", {"--model_def=tiny.model.custom_model", "--training_data=train", "--dry_run"}),
      kExitOk);
  EXPECT_THAT(json::parse(fake_.out())["command"], Contains("elasticdl.worker"));
}

}  // namespace
}  // namespace edl::cli
