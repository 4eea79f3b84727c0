#include "ps/process/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include "base/clock.h"
#include "base/testing/status_matchers.h"

namespace edl::ps {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class MetricsServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = ParameterServer::Start({.host = "127.0.0.1", .lanes = 1}, clock_);
    ASSERT_OK(server);
    server_ = *std::move(server);
  }
  void Start(const std::string& token) {
    auto metrics = StartMetricsServer(*server_, "127.0.0.1", 0, token, {{"job_name", "iris"}});
    ASSERT_OK(metrics);
    metrics_ = *std::move(metrics);
  }
  httplib::Result Get(const char* path, const httplib::Headers& headers = {}) {
    return httplib::Client("127.0.0.1", metrics_->port()).Get(path, headers);
  }

  SystemClock clock_;
  std::unique_ptr<ParameterServer> server_;
  std::unique_ptr<http::PageServer> metrics_;
};

TEST_F(MetricsServerTest, ServesMetricsAndHealth) {
  Start("");
  const auto metrics = Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->status, 200);
  EXPECT_THAT(metrics->body, HasSubstr("elasticdl_ps_rows{job_name=\"iris\",lane=\"0\"} 0\n"));
  EXPECT_EQ(metrics->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  const auto health = Get("/healthz");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->body, "ok\n");
}

TEST_F(MetricsServerTest, ServesOpenMetricsToThoseWhoPreferIt) {
  Start("");
  const auto answer = Get("/metrics", {{"Accept", "application/openmetrics-text;version=1.0.0"}});
  ASSERT_TRUE(answer);
  EXPECT_THAT(answer->get_header_value("Content-Type"), HasSubstr("application/openmetrics-text"));
  EXPECT_THAT(answer->body, EndsWith("# EOF\n"));
}

TEST_F(MetricsServerTest, RequiresTheToken) {
  Start("secret");
  for (const char* wrong : {"", "Bearer ", "Bearer secre", "Bearer secrets", "secret"}) {
    const auto answer = Get("/metrics", {{"Authorization", wrong}});
    ASSERT_TRUE(answer) << wrong;
    EXPECT_EQ(answer->status, 401) << wrong;
  }
  const auto answer = Get("/metrics", {{"Authorization", "Bearer secret"}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  const auto health = Get("/healthz");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 200);
}

TEST_F(MetricsServerTest, ReportsAPortThatIsInUse) {
  Start("");
  const auto second = StartMetricsServer(*server_, "127.0.0.1", metrics_->port(), "", {});
  EXPECT_THAT(second, StatusIs(Code::kUnavailable));
  EXPECT_THAT(second.status().message(), HasSubstr("--http_port"));
}

}  // namespace
}  // namespace edl::ps
