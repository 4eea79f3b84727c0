#include "kube/kubeconfig.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::kube {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFile = "/home/me/.kube/config";

constexpr const char* kFull = R"(
apiVersion: v1
kind: Config
current-context: kind
preferences: {}
clusters:
- name: kind
  cluster:
    server: https://127.0.0.1:6443/
    certificate-authority-data: Q0E=
    tls-server-name: kubernetes
    proxy-url: http://proxy:3128
    extensions: [{name: other, extension: {last-update: never}}]
users:
- name: admin
  user:
    client-certificate: pki/admin.crt
    client-key: /etc/admin.key
    as: somebody
    as-groups: [one, two]
- name: cloud
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [--region, eu]
      env: [{name: PROFILE, value: work}]
      interactiveMode: Always
      installHint: install it
contexts:
- name: kind
  context: {cluster: kind, user: admin, namespace: training}
)";

TEST(Kubeconfig, HasWhatTheFileSays) {
  const auto parsed = ParseKubeconfig(kFull, kFile);
  ASSERT_OK(parsed);
  EXPECT_EQ(parsed->current_context, "kind");
  const KubeconfigCluster& cluster = parsed->clusters.at("kind");
  EXPECT_EQ(cluster.server, "https://127.0.0.1:6443/");
  EXPECT_EQ(cluster.certificate_authority.data, "CA");
  EXPECT_EQ(cluster.tls_server_name, "kubernetes");
  EXPECT_EQ(cluster.proxy_url, "http://proxy:3128");
  EXPECT_FALSE(cluster.insecure_skip_tls_verify);
  const KubeconfigUser& admin = parsed->users.at("admin");
  EXPECT_EQ(admin.as.user, "somebody");
  EXPECT_EQ(admin.as.groups, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(parsed->contexts.at("kind").ns, "training");
}

TEST(Kubeconfig, TakesPathsFromItsOwnFolder) {
  const auto parsed = ParseKubeconfig(kFull, kFile);
  ASSERT_OK(parsed);
  EXPECT_EQ(parsed->users.at("admin").client_certificate.file, "/home/me/.kube/pki/admin.crt");
  EXPECT_EQ(parsed->users.at("admin").client_key.file, "/etc/admin.key");
  EXPECT_EQ(parsed->users.at("cloud").exec->command, "/home/me/.kube/./bin/login");
}

TEST(Kubeconfig, LeavesABareCommandToPath) {
  const auto parsed = ParseKubeconfig("users: [{name: u, user: {exec: {command: aws}}}]", kFile);
  ASSERT_OK(parsed);
  EXPECT_EQ(parsed->users.at("u").exec->command, "aws");
}

TEST(Kubeconfig, KeepsHowAPluginIsRun) {
  const auto parsed = ParseKubeconfig(kFull, kFile);
  ASSERT_OK(parsed);
  const ExecPlugin& plugin = *parsed->users.at("cloud").exec;
  EXPECT_EQ(plugin.args, (std::vector<std::string>{"--region", "eu"}));
  EXPECT_EQ(plugin.env.at(0), std::make_pair(std::string("PROFILE"), std::string("work")));
  EXPECT_TRUE(plugin.needs_terminal);
  EXPECT_EQ(plugin.install_hint, "install it");
}

TEST(Kubeconfig, TakesTheFirstOfTwoFilesNameByName) {
  auto first = ParseKubeconfig("clusters: [{name: a, cluster: {server: https://one}}]", kFile);
  const auto second = ParseKubeconfig(
      "current-context: x\n"
      "clusters: [{name: a, cluster: {server: https://two}}, {name: b, cluster: {}}]",
      kFile);
  ASSERT_TRUE(first.ok() && second.ok());

  first->Merge(*second);

  EXPECT_EQ(first->clusters.at("a").server, "https://one");
  EXPECT_TRUE(first->clusters.contains("b"));
  EXPECT_EQ(first->current_context, "x");
}

TEST(Kubeconfig, OfNothingIsEmpty) {
  const auto parsed = ParseKubeconfig("", kFile);
  ASSERT_OK(parsed);
  EXPECT_TRUE(parsed->contexts.empty());
}

TEST(Kubeconfig, NamesTheFileTheEntryAndTheLineOfAMistake) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"clusters: {a: 1}", "'clusters': expected a list"},
      {"- a", "expected a map"},
      {"clusters:\n- name: kind\n  cluster:\n    certificate-authority-data: '!'",
       "cluster 'kind' (line 4): 'certificate-authority-data'"},
      {"clusters:\n- name: kind\n  cluster: {insecure-skip-tls-verify: maybe}",
       "expected true or false"},
      {"users: [{name: u, user: {token: [1]}}]", "'token': expected a string"},
      {"a: [", "is not YAML (line"},
  };
  for (const auto& [text, words] : mistakes) {
    const auto parsed = ParseKubeconfig(text, kFile);
    EXPECT_THAT(parsed, StatusIs(Code::kInvalidArgument)) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr(words));
    EXPECT_THAT(parsed.status().message(), HasSubstr(kFile));
  }
}

}  // namespace
}  // namespace edl::kube
