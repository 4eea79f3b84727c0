#include "kube/config.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"

namespace edl::kube {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    sources_.home = folder_ / "home";
    sources_.service_account = folder_ / "account";
  }

  fs::path Write(const std::string& name, const std::string& content) {
    fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    EXPECT_OK(WriteFileAtomically(path, content));
    return path;
  }
  // A kubeconfig of one context, "kind".
  static std::string OneContext(const std::string& cluster, const std::string& user) {
    return "current-context: kind\n"
           "contexts: [{name: kind, context: {cluster: c, user: u}}]\n"
           "clusters: [{name: c, cluster: {" +
           cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
  }
  Status Refused(const std::string& kubeconfig) {
    sources_.file = Write("kubeconfig", kubeconfig);
    return LoadConfig(sources_).status();
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  ConfigSources sources_;
};

TEST_F(ConfigTest, IsReadFromTheHomeFolderByDefault) {
  Write("home/.kube/config", OneContext("server: 'https://one:6443/'", "token: secret"));

  const auto config = LoadConfig(sources_);

  ASSERT_OK(config);
  EXPECT_EQ(config->server, "https://one:6443");
  EXPECT_EQ(config->credentials.token, "secret");
  EXPECT_EQ(config->ns, "default");
  EXPECT_THAT(config->source, HasSubstr("context 'kind' of"));
}

TEST_F(ConfigTest, PrefersTheVariableToTheHomeAndTheFlagToBoth) {
  Write("home/.kube/config", OneContext("server: 'https://home'", ""));
  sources_.kubeconfig =
      "/nowhere/config:" + Write("env", OneContext("server: 'https://env'", "")).string();
  EXPECT_EQ(LoadConfig(sources_)->server, "https://env");

  sources_.file = Write("flag", OneContext("server: 'https://flag'", ""));
  EXPECT_EQ(LoadConfig(sources_)->server, "https://flag");
}

TEST_F(ConfigTest, ReadsCertificatesBesideTheFile) {
  Write("home/.kube/ca.crt", "the authority");
  Write("home/.kube/me.crt", "me");
  Write("home/.kube/config", OneContext("server: 'https://one', certificate-authority: ca.crt",
                                        "client-certificate: me.crt, client-key-data: a2V5"));

  const auto config = LoadConfig(sources_);

  ASSERT_OK(config);
  EXPECT_EQ(config->certificate_authority, "the authority");
  EXPECT_EQ(config->credentials.client_certificate, "me");
  EXPECT_EQ(config->credentials.client_key, "key");
}

TEST_F(ConfigTest, IsThePodsWhenThereIsNoFile) {
  sources_.service_host = "fd00::1";
  sources_.service_port = "443";
  Write("account/token", "rotates");
  Write("account/ca.crt", "the authority");
  Write("account/namespace", "training\n");

  const auto config = LoadConfig(sources_);

  ASSERT_OK(config);
  EXPECT_EQ(config->server, "https://[fd00::1]:443");
  EXPECT_EQ(config->ns, "training");
  EXPECT_EQ(config->credentials.token_file, folder_ / "account" / "token");
  EXPECT_EQ(config->certificate_authority, "the authority");
  EXPECT_EQ(config->certificate_authority_file, folder_ / "account" / "ca.crt");
}

TEST_F(ConfigTest, ReportsNotFoundIfNoClusterIsConfigured) {
  EXPECT_THAT(LoadConfig(sources_), StatusIs(Code::kNotFound));
}

TEST_F(ConfigTest, ReportsANamedFileThatIsMissing) {
  sources_.file = "/nowhere/config";
  EXPECT_THAT(LoadConfig(sources_), StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(Refused(OneContext("server: 'https://one', certificate-authority: gone.crt", "")),
              StatusIs(Code::kFailedPrecondition));
}

TEST_F(ConfigTest, ReportsAPodWithoutAToken) {
  sources_.service_host = "10.0.0.1";
  sources_.service_port = "443";
  EXPECT_THAT(LoadConfig(sources_).status().message(), HasSubstr("automountServiceAccountToken"));
}

TEST_F(ConfigTest, NamesWhatIsWrongAndWhatThereIs) {
  EXPECT_THAT(Refused("contexts: [{name: a, context: {}}]").message(),
              HasSubstr("no current-context (defined: a)"));
  EXPECT_THAT(Refused("current-context: b\ncontexts: [{name: a, context: {}}]").message(),
              HasSubstr("no context 'b' (defined: a)"));
  EXPECT_THAT(Refused("current-context: a\ncontexts: [{name: a, context: {cluster: c}}]").message(),
              HasSubstr("cluster 'c', which is not defined (none are defined)"));
  EXPECT_THAT(Refused(OneContext("server: 'one:6443'", "")).message(), HasSubstr("https://"));
  EXPECT_THAT(Refused(OneContext("server: 'https://one'", "auth-provider: {name: gcp}")).message(),
              HasSubstr("exec plugin"));
  EXPECT_THAT(Refused(OneContext("server: 'https://one'", "client-key-data: a2V5")).message(),
              HasSubstr("only one of"));
}

}  // namespace
}  // namespace edl::kube
