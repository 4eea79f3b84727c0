#include "http/pages.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing/await.h"
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

// A client that is connected and sends only these bytes.
class SlowClient {
 public:
  SlowClient(int port, std::string_view bytes) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in address{.sin_family = AF_INET,
                              .sin_port = htons(static_cast<uint16_t>(port)),
                              .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                              .sin_zero = {}};
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    Send(bytes);
  }
  ~SlowClient() { close(socket_); }
  SlowClient(const SlowClient&) = delete;
  SlowClient& operator=(const SlowClient&) = delete;

  // Whether the server has not closed the connection.
  bool Send(std::string_view bytes) const {
    return send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0;
  }
  bool closed() const {
    char byte = 0;
    const ssize_t count = recv(socket_, &byte, 1, MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN);
  }

 private:
  const int socket_;
};

TEST(PageServer, ClosesTheConnectionsAboveItsLimit) {
  const auto server = PageServer::Start({.host = "127.0.0.1", .timeout = std::chrono::hours(1)},
                                        {{"/hello", Hello}});
  ASSERT_OK(server);
  std::vector<std::unique_ptr<SlowClient>> clients;
  for (int i = 0; i < 70; ++i) {
    clients.push_back(std::make_unique<SlowClient>((*server)->port(), "GET /hel"));
  }
  const auto closed = [&] {
    return std::ranges::count_if(clients, [](const auto& client) { return client->closed(); });
  };
  EXPECT_OK(AwaitPolling("6 closed connections", [&] { return closed() == 6; }));
}

TEST(PageServer, ClosesAConnectionWhoseRequestTakesTooLong) {
  const auto server = PageServer::Start(
      {.host = "127.0.0.1", .timeout = std::chrono::milliseconds(100)}, {{"/hello", Hello}});
  ASSERT_OK(server);
  const SlowClient client((*server)->port(), "GET /hello HTTP/1.1\r\n");
  // Each byte arrives in time.
  EXPECT_OK(AwaitPolling("the end of the connection", [&] { return !client.Send("a"); }));
}

TEST(PageServer, ListensOnAllAddressesOfIPv4AndIPv6) {
  const auto server = PageServer::Start({}, {{"/hello", Hello}});
  ASSERT_OK(server);
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
