#include "kube/exec_plugin.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::kube {
namespace {

using ::testing::HasSubstr;

constexpr const char* kVersion = "client.authentication.k8s.io/v1";

// A plugin that is a line of shell.
ExecPlugin Shell(const std::string& script) {
  return {.command = "sh", .args = {"-c", script}, .api_version = kVersion};
}

std::string Credential(const std::string& status) {
  return R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{)" +
         status + "}}";
}

Result<ExecCredential> RunWith(const ExecPlugin& plugin, const Config& config = {}) {
  return RunExecPlugin(plugin, config, {"PATH=/usr/bin:/bin", "REGION=eu"});
}

TEST(ExecPlugin, GivesATokenAndHowLongItLasts) {
  const auto credential = RunWith(
      Shell("echo '" +
            Credential(R"("token":"secret","expirationTimestamp":"2026-11-15T10:00:00Z")") + "'"));

  ASSERT_OK(credential);
  EXPECT_EQ(credential->token, "secret");
  EXPECT_EQ(credential->expires_at, WallTime(std::chrono::seconds(1794736800)));
}

TEST(ExecPlugin, SeesItsEnvironmentAndTheCluster) {
  const std::string told = "$REGION $PROFILE $(echo $KUBERNETES_EXEC_INFO | tr -d '\"')";
  ExecPlugin plugin = Shell("cat << END\n" + Credential(R"("token":")" + told + R"(")") + "\nEND");
  plugin.env = {{"PROFILE", "work"}, {"REGION", "us"}};
  plugin.provide_cluster_info = true;

  const auto credential = RunWith(plugin, {.server = "https://one:6443"});

  ASSERT_OK(credential);
  EXPECT_THAT(credential->token, HasSubstr("us work "));
  EXPECT_THAT(credential->token, HasSubstr("server:https://one:6443"));
  EXPECT_THAT(credential->token, HasSubstr("interactive:false"));
}

TEST(ExecPlugin, MayWriteALotToStderr) {
  const auto credential = RunWith(
      Shell("i=0; while [ $i -lt 3000 ]; do echo 'a line that nobody reads, on and on' >&2; "
            "i=$((i+1)); done; echo '" +
            Credential(R"("token":"secret")") + "'"));

  ASSERT_OK(credential);
}

TEST(ExecPlugin, ThatFailsIsQuoted) {
  ExecPlugin plugin = Shell("echo 'please log in' >&2; exit 3");
  plugin.install_hint = "see https://example.com";

  const Status status = RunWith(plugin).status();

  EXPECT_THAT(status, StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(status.message(), HasSubstr("exit code 3: please log in"));
  EXPECT_THAT(status.message(), HasSubstr("see https://example.com"));
}

TEST(ExecPlugin, ThatIsNotThereIsNamed) {
  const Status status = RunWith({.command = "no-such-login", .api_version = kVersion}).status();

  EXPECT_THAT(status, StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(status.message(), HasSubstr("'no-such-login': cannot be started"));
}

TEST(ExecPlugin, OfAnUnknownVersionIsNotRun) {
  ExecPlugin plugin = Shell("echo");
  plugin.api_version = "client.authentication.k8s.io/v1alpha1";
  EXPECT_THAT(RunWith(plugin).status().message(), HasSubstr("v1alpha1"));
}

TEST(ExecCredentials, AreRefusedWhenSomethingIsMissing) {
  const std::pair<std::string, const char*> wrong[] = {
      {"", "the output is not an ExecCredential"},
      {"[]", "the output is not an ExecCredential"},
      {R"({"kind":"ExecCredential","apiVersion":"v0"})", "has version 'v0'"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"})", "no status"},
      {Credential(""), "neither a token nor a certificate"},
      {Credential(R"("clientKeyData":"k")"), "only one of"},
      {Credential(R"("token":"t","expirationTimestamp":"soon")"), "not an RFC 3339 time"},
  };
  for (const auto& [text, words] : wrong) {
    EXPECT_THAT(ParseExecCredential(text, kVersion).status().message(), HasSubstr(words)) << text;
  }
}

}  // namespace
}  // namespace edl::kube
