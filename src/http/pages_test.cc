#include "http/pages.h"

#include <future>
#include <vector>

#include <gtest/gtest.h>
#include <httplib.h>

#include "base/testing/status_matchers.h"

namespace edl::http {
namespace {

Page Hello(const PageRequest& request) {
  return {.status = request.authorization.empty() ? 200 : 401, .text = "hello\n"};
}

class PageServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = PageServer::Start({.host = "127.0.0.1"}, {{"/hello", Hello}});
    ASSERT_TRUE(started.ok()) << started.status().message();
    server_ = *std::move(started);
  }

  httplib::Result Get(const char* path, const httplib::Headers& headers = {}) {
    return httplib::Client("127.0.0.1", server_->port()).Get(path, headers);
  }

  std::unique_ptr<PageServer> server_;
};

TEST_F(PageServerTest, ServesItsPagesAndNothingElse) {
  const auto found = Get("/hello");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->status, 200);
  EXPECT_EQ(found->body, "hello\n");

  const auto missing = Get("/other");
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->status, 404);
}

TEST_F(PageServerTest, APageSeesTheAuthorizationHeader) {
  const auto found = Get("/hello", {{"Authorization", "Bearer x"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->status, 401);
}

TEST(PageServer, ListensOnAllAddressesOfIPv4AndIPv6) {
  const auto server = PageServer::Start({}, {{"/hello", Hello}});
  ASSERT_TRUE(server.ok()) << server.status().message();
  const int port = (*server)->port();
  EXPECT_TRUE(httplib::Client("127.0.0.1", port).Get("/hello"));
  if (!PageServer::Start({.host = "::1"}, {}).ok()) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_TRUE(httplib::Client("::1", port).Get("/hello"));
}

TEST_F(PageServerTest, APortInUseIsAnErrorThatNamesTheFlag) {
  const auto second = PageServer::Start(
      {.host = "127.0.0.1", .port = server_->port(), .flag = "--metrics-bind-address"}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kUnavailable);
  EXPECT_NE(second.status().message().find("--metrics-bind-address"), std::string::npos);
}

}  // namespace
}  // namespace edl::http
