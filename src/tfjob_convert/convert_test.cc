#include "tfjob_convert/convert.h"

#include "tfjob_convert/comments.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::tfjob_convert {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kTemplate =
    "{spec: {containers: [{name: tensorflow, image: example/a}]}}";

Conversion Converted(std::string_view text) {
  Result<Conversion> converted = Convert(text, JsonOutput::kYaml);
  EXPECT_TRUE(converted.ok()) << converted.status();
  return converted.ok() ? *std::move(converted) : Conversion();
}

// A TFJob of this version with these lines in its spec.
std::string Job(std::string_view version, std::string_view spec) {
  return fmt::format("apiVersion: kubeflow.org/{}\nkind: TFJob\nmetadata: {{name: j}}\nspec:\n{}",
                     version, spec);
}

// A TFJob of v1 with one worker and these additional fields.
std::string WorkerJob(std::string_view fields, std::string_view pod = kTemplate) {
  return Job("v1", fmt::format("{}  tfReplicaSpecs: {{Worker: {{template: {}}}}}\n", fields, pod));
}

TEST(Convert, PassesOtherKindsThrough) {
  const std::string text =
      "# A comment.\n%YAML 1.1\n---\nkind: Job\napiVersion: batch/v1\nspec: {a: yes}\n---\n"
      "kind: TFJob\napiVersion: example.com/v1\n---\n{\"kind\": \"PyTorchJob\"}";
  const Conversion converted = Converted(text);
  EXPECT_EQ(converted.text, text);
  EXPECT_EQ(converted.jobs, 0);
  EXPECT_THAT(converted.notes, IsEmpty());
}

TEST(Convert, ChangesOnlyTheDocumentsThatNeedIt) {
  const std::string job = WorkerJob("");
  const std::string old = WorkerJob("  backoffLimit: 1 # once\n");
  const std::string map = "kind: ConfigMap # keep\n";
  const Conversion converted = Converted(map + "---\n" + old + "---\n" + job + "---\n" + map);
  EXPECT_THAT(converted.text, ::testing::StartsWith(map + "---\napiVersion"));
  EXPECT_THAT(converted.text, ::testing::EndsWith("---\n" + job + "---\n" + map));
  EXPECT_THAT(converted.notes,
              ElementsAre("document 2, TFJob j: spec.backoffLimit -> spec.runPolicy.backoffLimit"));
  EXPECT_EQ(converted.jobs, 2);
  EXPECT_EQ(converted.changed_jobs, 1);
  EXPECT_TRUE(converted.lost_comments);
}

TEST(Convert, JsonStaysJsonInAFile) {
  const std::string other = R"({"kind": "ConfigMap"})";
  const std::string job =
      R"({"kind": "TFJob", "apiVersion": "kubeflow.org/v1", "spec": {"backoffLimit": 1, )"
      R"("tfReplicaSpecs": {"Worker": {"template": {"spec": {"containers": )"
      R"([{"name": "tensorflow", "image": "a"}]}}}}}})";

  const auto converted = Convert(other + "\n---\n" + job + "\n", JsonOutput::kJson);

  ASSERT_OK(converted);
  EXPECT_THAT(converted->text, ::testing::StartsWith(other + "\n---\n{\n"));
  EXPECT_THAT(converted->text, HasSubstr(R"("runPolicy": {)"));
}

TEST(Convert, SaysWhichRolesGetTheSchedulerOfTheJob) {
  const auto notes = [](std::string_view scheduler, std::string_view pod) {
    return Converted(Job("v1alpha1",
                         fmt::format("  schedulerName: {}\n  replicaSpecs: [{{template: {}}}]\n",
                                     scheduler, pod)))
        .notes;
  };
  const std::string own =
      "{spec: {schedulerName: own, containers: [{name: tensorflow, image: example/a}]}}";
  EXPECT_THAT(notes("fast", kTemplate),
              Contains(HasSubstr("schedulerName (fast) -> template.spec.schedulerName of Master")));
  EXPECT_THAT(notes("fast", own), Contains(HasSubstr("schedulerName (fast) removed")));
  EXPECT_THAT(notes("null", kTemplate), Contains(HasSubstr("it was null")));
}

TEST(Convert, SaysWhatItAddsToAParameterServerWithoutATemplate) {
  const Conversion converted = Converted(
      Job("v1alpha1",
          fmt::format("  replicaSpecs: [{{template: {}}}, {{tfReplicaType: PS, isDefaultPS: "
                      "true}}]\n",
                      kTemplate)));
  EXPECT_THAT(converted.notes, Contains(HasSubstr("restartPolicy OnFailure added")));
  EXPECT_THAT(converted.notes, Contains(HasSubstr("isDefaultPS removed")));
}

TEST(Convert, AcceptsTheFirstGroupAndKind) {
  const Conversion converted = Converted(
      fmt::format("apiVersion: tensorflow.org/v1alpha1\nkind: TfJob\nspec: {{replicaSpecs: "
                  "[{{template: {}}}]}}\n",
                  kTemplate));
  EXPECT_THAT(converted.notes,
              Contains("document 1, TfJob: apiVersion tensorflow.org/v1alpha1 -> kubeflow.org/v1"));
  EXPECT_THAT(converted.notes, Contains("document 1, TfJob: kind TfJob -> TFJob"));
  EXPECT_THAT(converted.notes,
              Contains("document 1, TfJob: spec.replicaSpecs[0] -> spec.tfReplicaSpecs.Master"));
}

TEST(Convert, TheFieldThatTheOperatorReadWins) {
  const std::string fields = "  backoffLimit: 2\n  runPolicy: {backoffLimit: 5}\n";
  EXPECT_THAT(Converted(WorkerJob(fields)).text, HasSubstr("backoffLimit: 5"));
  const std::string old =
      Job("v1beta2",
          fmt::format("{}  tfReplicaSpecs: {{Worker: {{template: {}}}}}\n", fields, kTemplate));
  EXPECT_THAT(Converted(old).text, HasSubstr("backoffLimit: 2"));
}

TEST(Convert, SaysWhatItCannotKnow) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {WorkerJob("  terminationPolicy: {chief: {replicaName: WORKER, replicaIndex: 1}}\n"),
       "warning: terminationPolicy named WORKER 1, but v1 ends the job with worker 0"},
      {WorkerJob("  tensorboard: {logDir: /logs}\n"),
       "warning: v1 has nothing that replaces spec.tensorboard"},
      {WorkerJob("", "{spec: {containers: []}}"), "has no containers"},
      {WorkerJob("", "{spec: {containers: [{name: a}, {name: b}]}}"),
       "no container is named tensorflow, which v1 requires; rename one of a, b"},
      {WorkerJob("",
                 "{spec: {containers: [{name: tensorflow, ports: [{containerPort: 7}, "
                 "{containerPort: 7}]}]}}"),
       "warning: spec.tfReplicaSpecs.Worker: the container port 7 is given twice"},
      {WorkerJob("  runPolicy: {cleanPodPolicy: all}\n"),
       "spec.runPolicy.cleanPodPolicy is 'all', but must be one of All, Running, None"},
      {WorkerJob("  colour: red\n"),
       "warning: spec.colour is not a field of kubeflow.org/v1, and was kept"},
      {Job("v1", "  runPolicy: {}\n"), "spec.tfReplicaSpecs has no replicas"},
      {Job("v1", fmt::format("  tfReplicaSpecs: {{Chief: {{template: {0}}}, MASTER: {{template: "
                             "{0}}}}}\n",
                             kTemplate)),
       "spec.tfReplicaSpecs has Chief and Master"},
      {Job("v1", fmt::format("  backoffLimit: 1\n  tfReplicaSpecs: {{ps: {{template: {0}}}}}\n",
                             kTemplate)),
       "cleanPodPolicy is not set: PS pods stay"},
      {"kind: NetworkPolicy\nmetadata: {name: net}\nspec: {podSelector: {matchLabels: {group-name: "
       "kubeflow.org}}}\n",
       "document 1, NetworkPolicy net: warning: spec.podSelector uses the label group-name, which "
       "pods of v1 do not have; they have training.kubeflow.org/operator-name=tfjob-controller"},
  };
  for (const auto& [text, note] : cases) {
    EXPECT_THAT(Converted(text).notes, Contains(HasSubstr(note))) << text;
  }
  // Pods of a batch Job have this label.
  EXPECT_THAT(Converted("kind: Service\nspec: {selector: {job-name: a}}\n").notes, IsEmpty());
}

TEST(Convert, NamesTheLineOfAnError) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"kind: Job\n---\n[1]\n", "document 2, line 3, object: expected an object"},
      {"kind: TFJob\napiVersion: kubeflow.org/v2\n",
       "document 1, line 2, TFJob: there is no version kubeflow.org/v2; the versions are v1alpha1"},
      {"kind: TFJob\napiVersion: kubeflow.org/v1\nspec: 3\n",
       "document 1, line 3, TFJob: the TFJob"},
      {Job("v1", "  runPolicy: 3\n"), "document 1, line 5, TFJob j: spec.runPolicy must be a map"},
      {Job("v1", "  tfReplicaSpecs: []\n"),
       "document 1, line 5, TFJob j: spec.tfReplicaSpecs must"},
      {Job("v1", "  tfReplicaSpecs:\n    Worker: 3\n"),
       "document 1, line 6, TFJob j: spec.tfReplicaSpecs.Worker must be a map"},
      {Job("v1", "  tfReplicaSpecs:\n    Worker:\n      template:\n        spec: 1\n"),
       "document 1, line 8, TFJob j: spec must be a map, found 1"},
      {Job("v1", "  tfReplicaSpecs: {Worker: {Template: {spec: {containers: [5]}}}}\n"),
       "document 1, line 5, TFJob j: a container must be a map, found 5"},
      {Job("v1alpha1", "  replicaSpecs:\n    - {tfReplicaType: MASTER}\n"),
       "document 1, line 6, TFJob j: the replicas of Master have no template"},
      {Job("v1alpha1", "  replicaSpecs:\n    - tfReplicaType: PS\n    - tfReplicaType: ps\n"),
       "document 1, line 7, TFJob j: spec.replicaSpecs[1] is a second ps; v1 has each role once"},
      {Job("v1alpha1", "  replicaSpecs:\n    - tfReplicaType: CHEF\n"),
       "document 1, line 6, TFJob j: there is no role 'CHEF'; the roles are Chief, Master"},
      {Job("v1alpha1", "  replicaSpecs:\n    - tfReplicaType: PS\n      tfPort: high\n"),
       "document 1, line 7, TFJob j: tfPort must be a number, found high"},
      {"kind: List\napiVersion: v1\nitems:\n- kind: Job\n- kind: TFJob\n  apiVersion: "
       "kubeflow.org/v1\n  spec: {tfReplicaSpecs: 1}\n",
       "document 1, line 7, TFJob: spec.tfReplicaSpecs must be a map"},
  };
  for (const auto& [text, message] : cases) {
    const Result<Conversion> converted = Convert(text, JsonOutput::kYaml);
    ASSERT_FALSE(converted.ok()) << text;
    EXPECT_THAT(converted.status().message(), HasSubstr(message)) << text;
  }
}

// A map whose keys are `last` in up to this many other cases, and then `last`.
std::string CasesOf(std::string_view last, int cases, std::string_view value) {
  std::string out = "{";
  for (int i = 0; i < cases; ++i) {
    std::string key(last);
    for (size_t bit = 0; bit < key.size(); ++bit) {
      const bool upper = ((i >> bit) & 1) != 0;
      key[bit] = static_cast<char>(upper ? std::toupper(key[bit]) : std::tolower(key[bit]));
    }
    if (key != last) out += fmt::format("\"{}\": {},", key, value);
  }
  return out + fmt::format("\"{}\": {}}}", last, value);
}

TEST(Convert, ConvertsThousandsOfKeysAndPortsAndRefusesThousandsOfRoles) {
  const std::string head = R"({"kind":"TFJob","apiVersion":"kubeflow.org/v1","spec":)";
  const std::string policy = CasesOf("activeDeadlineSeconds", 6'000, "1");
  EXPECT_OK(Convert(head + R"({"runPolicy":)" + policy + "}}", JsonOutput::kJson));

  std::string ports = "{\"containerPort\": 1}";
  for (int i = 2; i < 6'000; ++i) ports += fmt::format(",{{\"containerPort\": {}}}", i);
  EXPECT_OK(Convert(head + R"({"tfReplicaSpecs":{"Worker":{"template":{"spec":{"containers":[)" +
                        R"({"name":"tensorflow","ports":[)" + ports + "]}]}}}}}}",
                    JsonOutput::kJson));

  EXPECT_THAT(Convert(head + R"({"tfReplicaSpecs":)" + CasesOf("Abcdefghijk", 2'000, "{}") + "}}",
                      JsonOutput::kJson)
                  .status()
                  .message(),
              HasSubstr("has 2000 roles"));
}

TEST(Convert, GivesAPortTheNameOfTfPort) {
  const Conversion converted = Converted(
      Job("v1alpha1",
          "  replicaSpecs:\n    - tfPort: 5000\n      template: {spec: {containers: [{name: "
          "tensorflow, ports: [{containerPort: 5000}]}]}}\n"));
  EXPECT_THAT(converted.text,
              HasSubstr("- containerPort: 5000\n                  name: tfjob-port"));
}

TEST(HasComment, IgnoresQuotesAndBlockScalars) {
  for (const char* yaml :
       {"# a", "a: 1 # b", "a: |\n  # no\nb: 2 # yes", "- a: |\n    # no\n  # yes", "a: \"#\" # b",
        "a: don't # b", "a: 'x' # b"}) {
    EXPECT_TRUE(HasComment(yaml)) << yaml;
  }
  for (const char* yaml : {"a: b#c", "a: \"x # y\"", "a: 'x # y'", "a: |\n  x\n\n  # no\n",
                           "a: \"x\n  # y\"", "- |-\n  # no", "a: \"\\\" # x\""}) {
    EXPECT_FALSE(HasComment(yaml)) << yaml;
  }
}

}  // namespace
}  // namespace edl::tfjob_convert
