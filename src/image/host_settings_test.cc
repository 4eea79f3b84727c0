#include "image/host_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/testing/status_matchers.h"

namespace edl::image {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class HostSettingsTest : public ::testing::Test {
 protected:
  HostSettingsTest() {
    fs::create_directories(home_ / ".config/pip");
    variables_["HOME"] = home_.string();
  }
  ~HostSettingsTest() override { fs::remove_all(home_); }

  void Write(const std::string& name, const std::string& text) const {
    ASSERT_OK(WriteFileAtomically(home_ / name, text));
  }
  HostSettings Read() const {
    return ReadHostSettings([this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    });
  }

  const fs::path home_ = fs::path(testing::TempDir()) / fmt::format("host_settings.{}", getpid());
  std::map<std::string, std::string> variables_;
};

TEST_F(HostSettingsTest, AreReadFromTheEnvironmentAndPipsFiles) {
  Write(".config/pip/pip.conf",
        "[global]\nindex-url = https://file.example\ntrusted-host = file.example\n");
  Write("own.conf", "[global]\ntrusted-host = own.example\n");
  Write("ca.pem", "certificates");
  variables_["PIP_CONFIG_FILE"] = (home_ / "own.conf").string();
  variables_["PIP_INDEX_URL"] = "https://variable.example";
  variables_["SSL_CERT_FILE"] = (home_ / "ca.pem").string();
  variables_["REQUESTS_CA_BUNDLE"] = (home_ / "none.pem").string();
  variables_["https_proxy"] = "http://proxy.example:3128";
  variables_["HTTP_PROXY"] = "";

  const HostSettings settings = Read();

  EXPECT_THAT(settings.proxies,
              UnorderedElementsAre(Pair("https_proxy", "http://proxy.example:3128")));
  EXPECT_EQ(settings.certificates, home_ / "ca.pem");
  EXPECT_THAT(settings.pip_config, HasSubstr("index-url = https://variable.example\n"));
  EXPECT_THAT(settings.pip_config, HasSubstr("trusted-host = own.example\n"));
  EXPECT_THAT(settings.pip_config, HasSubstr("cert = /etc/ssl/certs/ca-certificates.crt\n"));
}

TEST_F(HostSettingsTest, MayBeEmpty) {
  variables_["PIP_CONFIG_FILE"] = "/dev/null";
  const HostSettings settings = Read();
  EXPECT_EQ(settings.pip_config, "[global]\n");
  EXPECT_TRUE(settings.certificates.empty());
  EXPECT_TRUE(settings.proxies.empty());
}

}  // namespace
}  // namespace edl::image
