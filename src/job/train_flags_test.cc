#include "job/train_flags.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::job {
namespace {

using ::testing::HasSubstr;

// The options of the published client, by introspection of its parser.
const std::set<std::string> kPublished = {"job_name",
                                          "image_name",
                                          "worker_image",
                                          "ps_image",
                                          "namespace",
                                          "num_workers",
                                          "num_ps_pods",
                                          "num_evaluators",
                                          "master_resource_request",
                                          "master_resource_limit",
                                          "worker_resource_request",
                                          "worker_resource_limit",
                                          "ps_resource_request",
                                          "ps_resource_limit",
                                          "chief_resource_request",
                                          "chief_resource_limit",
                                          "evaluator_resource_request",
                                          "evaluator_resource_limit",
                                          "master_pod_priority",
                                          "worker_pod_priority",
                                          "ps_pod_priority",
                                          "chief_pod_priority",
                                          "evaluator_pod_priority",
                                          "volume",
                                          "image_pull_policy",
                                          "restart_policy",
                                          "envs",
                                          "populate_env_names",
                                          "extra_pypi_index",
                                          "num_minibatches_per_task",
                                          "cluster_spec",
                                          "cluster_spec_json",
                                          "yaml",
                                          "force_use_kube_config_file",
                                          "aux_params",
                                          "log_file_path",
                                          "minibatch_size",
                                          "model_zoo",
                                          "model_def",
                                          "feed",
                                          "loss",
                                          "optimizer",
                                          "callbacks",
                                          "eval_metrics_fn",
                                          "custom_data_reader",
                                          "get_model_steps",
                                          "data_reader_params",
                                          "distribution_strategy",
                                          "checkpoint_steps",
                                          "checkpoint_dir",
                                          "keep_checkpoint_max",
                                          "output",
                                          "log_level",
                                          "num_epochs",
                                          "training_data",
                                          "validation_data",
                                          "evaluation_steps",
                                          "grads_to_wait",
                                          "sync_version_tolerance",
                                          "use_async",
                                          "lr_staleness_modulation",
                                          "checkpoint_dir_for_init",
                                          "log_loss_steps",
                                          "max_step",
                                          "need_elasticdl_job_service",
                                          "need_task_manager",
                                          "need_pod_manager",
                                          "task_fault_tolerance",
                                          "relaunch_timeout_worker",
                                          "job_command",
                                          "need_tf_config",
                                          "relaunch_on_worker_failure",
                                          "ps_is_critical",
                                          "critical_worker_index",
                                          "ps_relaunch_max_num",
                                          "launch_worker_after_ps_running",
                                          "enable_automate_memory"};

TEST(TrainFlags, HasEveryFlagOfThePublishedClient) {
  EXPECT_EQ(kPublished.size(), 77U);
  for (const std::string& name : kPublished) {
    const FlagSpec* spec = TrainFlags().Find(name);
    ASSERT_NE(spec, nullptr) << name;
    EXPECT_FALSE(spec->not_in_original) << name;
  }
}

TEST(TrainFlags, KeepsTheMeaningOfAbbreviationsOfTheOriginal) {
  for (const FlagSpec& spec : TrainFlags().specs()) {
    EXPECT_EQ(spec.not_in_original, !kPublished.contains(spec.name)) << spec.name;
  }
  EXPECT_EQ((*TrainFlags().Resolve("num_ps"))->name, "num_ps_pods");
  EXPECT_EQ((*TrainFlags().Resolve("num_evaluator"))->name, "num_evaluators");
  EXPECT_EQ((*TrainFlags().Resolve("max"))->name, "max_step");
  EXPECT_THAT(TrainFlags().Resolve("image").status().message(), HasSubstr("ambiguous"));
  EXPECT_THAT(TrainFlags().Resolve("num_e").status().message(), HasSubstr("ambiguous"));
}

TEST(TrainFlags, AcceptsTheOldNameOfFeed) {
  EXPECT_EQ(TrainFlags().Find("dataset_fn")->name, "feed");
}

TEST(TrainFlags, HasValidDefaults) {
  FlagValues values(MasterFlags());
  for (const FlagSpec& spec : MasterFlags().specs()) {
    EXPECT_OK(values.Set(spec.name, spec.default_value, FlagSource::kDefault)) << spec.name;
    EXPECT_EQ(values.Text(spec.name), spec.default_value) << spec.name;
    EXPECT_FALSE(spec.help.empty()) << spec.name;
    EXPECT_FALSE(spec.group.empty()) << spec.name;
  }
}

}  // namespace
}  // namespace edl::job
