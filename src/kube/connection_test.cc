#include "kube/connection.h"

#include <filesystem>
#include <future>
#include <latch>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "kube/testing/http_server.h"

namespace edl::kube {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

// A server that records the callers, and rejects one of them.
class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() { config_.server = server_.url(); }

  void Write(const char* name, const std::string& content) {
    ASSERT_OK(WriteFileAtomically(folder_ / name, content));
  }
  Connection Connect() { return Connection(config_, clock_, {"PATH=/usr/bin:/bin"}); }

  std::vector<std::string> callers_;  // written before the answer is sent
  std::string refused_ = "nobody";
  HttpServer server_{[this](const ServedRequest& request, ServedConnection& connection) {
    const auto found = request.headers.find("authorization");
    callers_.push_back(found == request.headers.end() ? "" : found->second);
    connection.Answer(callers_.back() == refused_ ? 401 : 200, "");
  }};
  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  FakeClock clock_;
  Config config_;
};

TEST_F(ConnectionTest, SendsItsToken) {
  config_.credentials.token = "secret";
  Connection connection = Connect();
  EXPECT_EQ(connection.Call({.path = "/"})->status, 200);
  EXPECT_THAT(callers_, ElementsAre("Bearer secret"));
}

TEST_F(ConnectionTest, KnowsNamesAndPasswordsToo) {
  config_.credentials.username = "me";
  config_.credentials.password = "pass";
  Connection connection = Connect();
  EXPECT_EQ(connection.Call({.path = "/"})->status, 200);
  EXPECT_THAT(callers_, ElementsAre("Basic bWU6cGFzcw=="));
}

TEST_F(ConnectionTest, ReadsATokenFileAgainAfterAMinute) {
  Write("token", "one\n");
  config_.credentials.token_file = folder_ / "token";
  Connection connection = Connect();
  ASSERT_OK(connection.Call({.path = "/"}));
  Write("token", "two\n");
  ASSERT_OK(connection.Call({.path = "/"}));

  clock_.Advance(Connection::kTokenFileAge);
  ASSERT_OK(connection.Call({.path = "/"}));
  fs::remove(folder_ / "token");
  clock_.Advance(Connection::kTokenFileAge);
  ASSERT_OK(connection.Call({.path = "/"}));

  EXPECT_THAT(callers_, ElementsAre("Bearer one", "Bearer one", "Bearer two", "Bearer two"));
  EXPECT_EQ(server_.connections(), 1);
}

TEST_F(ConnectionTest, OpensAConnectionWithANewAuthority) {
  Write("token", "one");
  Write("ca.crt", "old");
  config_.credentials.token_file = folder_ / "token";
  config_.certificate_authority_file = folder_ / "ca.crt";
  config_.certificate_authority = "old";
  Connection connection = Connect();
  const auto call_after_renewal = [&] {
    clock_.Advance(Connection::kTokenFileAge);
    ASSERT_OK(connection.Call({.path = "/"}));
  };
  call_after_renewal();
  call_after_renewal();
  EXPECT_EQ(server_.connections(), 1);

  Write("ca.crt", "new");
  call_after_renewal();
  EXPECT_EQ(server_.connections(), 2);

  fs::remove(folder_ / "ca.crt");
  call_after_renewal();
  EXPECT_EQ(server_.connections(), 2);
}

TEST_F(ConnectionTest, AsksForNewCredentialsOnceWhenTheyAreRefused) {
  Write("token", "old");
  config_.credentials.token_file = folder_ / "token";
  Connection connection = Connect();
  ASSERT_EQ(connection.Call({.path = "/"})->status, 200);
  refused_ = "Bearer old";
  EXPECT_EQ(connection.Call({.path = "/"})->status, 401);
  Write("token", "new");

  EXPECT_EQ(connection.Call({.path = "/"})->status, 200);

  EXPECT_THAT(callers_,
              ElementsAre("Bearer old", "Bearer old", "Bearer old", "Bearer old", "Bearer new"));
}

TEST_F(ConnectionTest, AsksAPluginAgainBeforeItsCredentialEnds) {
  // Counts how often it ran, by the length of a file.
  config_.credentials.exec = ExecPlugin{
      .command = "sh",
      .args = {"-c", "printf x >> " + (folder_ / "runs").string() +
                         R"(; printf '{"apiVersion":"client.authentication.k8s.io/v1",)"
                         R"("kind":"ExecCredential","status":{"token":"run%s",)"
                         R"("expirationTimestamp":"1970-01-02T00:01:00Z"}}' "$(wc -c < )" +
                         (folder_ / "runs").string() + ")\""},
      .api_version = "client.authentication.k8s.io/v1"};
  Connection connection = Connect();  // at 1970-01-02T00:00:00Z
  const auto first = connection.Call({.path = "/"});
  ASSERT_OK(first);
  clock_.Advance(std::chrono::seconds(49));
  ASSERT_OK(connection.Call({.path = "/"}));

  clock_.Advance(std::chrono::seconds(1));
  ASSERT_OK(connection.Call({.path = "/"}));

  EXPECT_THAT(callers_, ElementsAre("Bearer run1", "Bearer run1", "Bearer run2"));
}

TEST_F(ConnectionTest, OpensAnotherConnectionAfterASilence) {
  std::latch both(2);
  HttpServer server([&](const ServedRequest& request, ServedConnection& connection) {
    if (request.target == "/silent") return connection.AwaitClose();
    if (request.target == "/together") both.arrive_and_wait();
    connection.Answer(200, "");
  });
  config_.server = server.url();
  Connection connection = Connect();
  auto other =
      std::async(std::launch::async, [&] { return connection.Call({.path = "/together"}); });
  ASSERT_OK(connection.Call({.path = "/together"}));
  ASSERT_OK(other.get());
  ASSERT_EQ(server.connections(), 2);

  const auto silent =
      connection.Call({.path = "/silent", .timeout = std::chrono::milliseconds(50)});
  EXPECT_THAT(silent, StatusIs(Code::kDeadlineExceeded));
  EXPECT_OK(connection.Call({.path = "/"}));

  EXPECT_EQ(server.connections(), 3) << "the other one of the first two is not used again";
}

TEST_F(ConnectionTest, SaysWhatIsMissing) {
  config_.credentials.token_file = folder_ / "no-token";
  Connection connection = Connect();
  EXPECT_THAT(connection.Call({.path = "/"}), StatusIs(Code::kFailedPrecondition));
}

}  // namespace
}  // namespace edl::kube
