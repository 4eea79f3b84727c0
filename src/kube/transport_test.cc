#include "kube/transport.h"

#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "kube/testing/http_server.h"

namespace edl::kube {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Config To(const HttpServer& server) { return {.server = server.url()}; }

TEST(Transport, SendsARequestAndReturnsItsAnswer) {
  ServedRequest seen;
  HttpServer server([&](const ServedRequest& request, ServedConnection& connection) {
    seen = request;
    connection.Answer(201, R"({"kind":"Pod"})", "Retry-After: 3\r\nWarning: 299 - \"old\"\r\n");
  });
  Transport transport(To(server));

  const auto response = transport.Call({.method = "POST",
                                        .path = "/api/v1/pods?dryRun=All",
                                        .body = "{}",
                                        .headers = {"Authorization: Bearer secret"}});

  ASSERT_OK(response);
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, R"({"kind":"Pod"})");
  EXPECT_EQ(response->retry_after, "3");
  EXPECT_THAT(response->warnings, ElementsAre("299 - \"old\""));
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.target, "/api/v1/pods?dryRun=All");
  EXPECT_EQ(seen.body, "{}");
  EXPECT_EQ(seen.headers["authorization"], "Bearer secret");
  EXPECT_EQ(seen.headers["content-type"], "application/json");
  EXPECT_THAT(seen.headers["user-agent"], HasSubstr("elasticdl/"));
}

TEST(Transport, ReachesAServerWhoseCertificateHasAnotherName) {
  ServedRequest seen;
  HttpServer server([&](const ServedRequest& request, ServedConnection& connection) {
    seen = request;
    connection.Answer(200, "");
  });
  Config config = To(server);
  config.server += "/prefix";
  config.tls_server_name = "kubernetes.invalid";
  Transport transport(config);

  const auto response = transport.Call({.path = "/api?a=b"});

  ASSERT_OK(response);
  EXPECT_EQ(seen.target, "/prefix/api?a=b");
  EXPECT_EQ("http://" + seen.headers["host"], server.url());
}

TEST(Transport, UsesAConnectionAgain) {
  HttpServer server([](const ServedRequest&, ServedConnection& connection) {
    connection.Answer(404, "not there");
  });
  Transport transport(To(server));

  for (int i = 0; i < 3; ++i) EXPECT_EQ(transport.Call({.path = "/x"})->status, 404);

  EXPECT_EQ(server.connections(), 1);
}

TEST(Transport, ReportsThatNoServerListens) {
  std::string url;
  {
    const HttpServer gone([](const ServedRequest&, ServedConnection&) {});
    url = gone.url();
  }
  Transport transport({.server = url});

  const auto response = transport.Call({.path = "/api"});

  EXPECT_THAT(response, StatusIs(Code::kUnavailable));
  EXPECT_THAT(response.status().message(), HasSubstr("GET " + url + "/api: "));
}

TEST(Transport, SaysThatTheConnectionBroke) {
  HttpServer server([](const ServedRequest&, ServedConnection& connection) {
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly so much");
    connection.Break();
  });
  Transport transport(To(server));

  EXPECT_THAT(transport.Call({.path = "/x"}), StatusIs(Code::kUnavailable));
}

TEST(Transport, DoesNotWaitLongerThanAsked) {
  HttpServer server(
      [](const ServedRequest&, ServedConnection& connection) { connection.AwaitClose(); });
  Transport transport(To(server));

  EXPECT_THAT(transport.Call({.path = "/x", .timeout = milliseconds(50)}),
              StatusIs(Code::kDeadlineExceeded));
}

TEST(Transport, StreamsBytesAsTheyCome) {
  std::promise<void> first_seen;
  const std::future<void> seen = first_seen.get_future();
  HttpServer server([&](const ServedRequest&, ServedConnection& connection) {
    connection.BeginChunks();
    connection.Chunk("one ");
    // The first chunk arrives before the second is sent.
    EXPECT_OK(AwaitReady(seen, "the first chunk"));
    connection.Chunk("two");
    connection.EndChunks();
  });
  Transport transport(To(server));
  std::string all;

  const auto response =
      transport.Stream({.path = "/watch", .timeout = milliseconds(0)}, [&](std::string_view bytes) {
        if (all.empty()) first_seen.set_value();
        all += bytes;
        return true;
      });

  ASSERT_OK(response);
  EXPECT_EQ(all, "one two");
  EXPECT_TRUE(response->body.empty());
}

TEST(Transport, KeepsTheBodyOfARefusedStream) {
  HttpServer server([](const ServedRequest&, ServedConnection& connection) {
    connection.Answer(410, "too old");
  });
  Transport transport(To(server));

  const auto response = transport.Stream({.path = "/watch"}, [](std::string_view) { return true; });

  ASSERT_OK(response);
  EXPECT_EQ(response->status, 410);
  EXPECT_EQ(response->body, "too old");
}

TEST(Transport, EndsAStreamWhenItsReaderHasEnough) {
  HttpServer server([](const ServedRequest&, ServedConnection& connection) {
    connection.BeginChunks();
    connection.Chunk("enough");
    connection.AwaitClose();
  });
  Transport transport(To(server));

  const auto response = transport.Stream({.path = "/watch", .timeout = milliseconds(0)},
                                         [](std::string_view) { return false; });

  EXPECT_OK(response);
}

TEST(Transport, CancelsAStreamOnRequest) {
  std::stop_source stop;
  HttpServer server([](const ServedRequest&, ServedConnection& connection) {
    connection.BeginChunks();
    connection.Chunk("first");
    connection.AwaitClose();
  });
  Transport transport(To(server));

  const auto response = transport.Stream(
      {.path = "/watch", .timeout = milliseconds(0)},
      [&](std::string_view) {
        stop.request_stop();
        return true;
      },
      stop.get_token());

  EXPECT_THAT(response, StatusIs(Code::kCancelled));
}

TEST(Transport, EndsASilentStream) {
  HttpServer server([](const ServedRequest&, ServedConnection& connection) {
    connection.BeginChunks();
    connection.Chunk("first");
    connection.AwaitClose();
  });
  Transport transport(To(server));

  const auto response =
      transport.Stream({.path = "/watch", .timeout = milliseconds(0), .silence = milliseconds(50)},
                       [](std::string_view) { return true; });

  EXPECT_THAT(response, StatusIs(Code::kUnavailable));
  EXPECT_THAT(response.status().message(), HasSubstr("received nothing for 50 ms"));
}

TEST(Transport, ServesManyCallersAtOnce) {
  HttpServer server([](const ServedRequest& request, ServedConnection& connection) {
    connection.Answer(200, request.target);
  });
  Transport transport(To(server));
  constexpr int kCallers = 8;
  std::vector<std::thread> callers;
  callers.reserve(kCallers);
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 20; ++i) {
        const std::string path = fmt::format("/{}/{}", caller, i);
        const auto response = transport.Call({.path = path});
        ASSERT_OK(response);
        EXPECT_EQ(response->body, path);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Transport, EndsItsCallsWhenItIsDestroyed) {
  std::promise<void> asked;
  HttpServer server([&](const ServedRequest&, ServedConnection& connection) {
    asked.set_value();
    connection.AwaitClose();
  });
  auto transport = std::make_unique<Transport>(To(server));
  auto call = std::async(std::launch::async, [&] { return transport->Call({.path = "/x"}); });
  ASSERT_OK(AwaitReady(asked.get_future(), "the request"));

  transport.reset();

  EXPECT_THAT(call.get(), StatusIs(Code::kCancelled));
}

}  // namespace
}  // namespace edl::kube
