#include "ps_client/client_thread.h"

#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "ps/parameter_server.h"

namespace edl::ps_client {
namespace {

constexpr size_t kDim = 4;
constexpr auto kLong = std::chrono::seconds(60);

// A pull of its own memory.
struct Pulled {
  explicit Pulled(const wire::Placement& placement, int64_t first) : keys(placement) {
    std::vector<int64_t> ids(1000);
    std::iota(ids.begin(), ids.end(), first);
    keys.Assign(ids);
    rows.resize(ids.size() * kDim, -1);
  }
  Keys keys;
  std::vector<float> rows;
};

class ClientThreadTest : public testing::Test {
 protected:
  ClientThreadTest() {
    auto client = ParameterClient::Connect(
        {.servers = {{"127.0.0.1", server_->port()}}, .stop = &stop_}, clock_);
    EXPECT_OK(client);
    placement_ = (*client)->placement();
    thread_ = std::make_unique<ClientThread>(std::move(*client), stop_);
    const auto declared = thread_->Call([](ParameterClient& client) {
      return client.Declare(
          {.text = R"({"tables": [{"name": "t", "dim": 4, "initializer": {"name": "ones"}}]})",
           .table_dims = {kDim}});
    });
    EXPECT_TRUE(declared->WaitFor(kLong));
    EXPECT_OK(declared->status());
  }

  std::shared_ptr<Pending> Pull(Pulled& into) {
    return thread_->Start(
        [&into](ParameterClient& client) {
          return client.StartPull({.tables = {{.keys = &into.keys, .rows = into.rows.data()}}});
        },
        [](ParameterClient& client, ParameterClient::Ticket ticket) {
          return client.WaitPull(ticket);
        });
  }

  const SystemClock clock_{};
  std::unique_ptr<ps::ParameterServer> server_ = std::move(*ps::ParameterServer::Start(
      {.host = "127.0.0.1", .lanes = 2, .incarnation = job::PsIncarnation(1)}, clock_));
  std::atomic<bool> stop_ = false;
  wire::Placement placement_{1};
  std::unique_ptr<ClientThread> thread_;
};

TEST_F(ClientThreadTest, ServesManyThreadsAtOnce) {
  std::vector<std::thread> askers;
  for (int64_t asker = 0; asker < 4; ++asker) {
    askers.emplace_back([this, asker] {
      for (int64_t i = 0; i < 20; ++i) {
        Pulled one(placement_, asker * 1000 + i);
        Pulled other(placement_, -1000 * asker);
        const auto first = Pull(one);
        const auto second = Pull(other);
        ASSERT_TRUE(second->WaitFor(kLong));
        ASSERT_TRUE(first->WaitFor(kLong));
        ASSERT_OK(first->status());
        ASSERT_EQ(one.rows, std::vector<float>(1000 * kDim, 1));
        ASSERT_EQ(other.rows, one.rows);
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
}

TEST_F(ClientThreadTest, MovesOnWhileNobodyWaits) {
  Pulled pulled(placement_, 0);
  std::promise<void> ended;
  const auto pending = thread_->Start(
      [&](ParameterClient& client) {
        return client.StartPull({.tables = {{.keys = &pulled.keys, .rows = pulled.rows.data()}}});
      },
      [&](ParameterClient& client, ParameterClient::Ticket ticket) {
        ended.set_value();
        return client.WaitPull(ticket);
      });
  EXPECT_EQ(ended.get_future().wait_for(kLong), std::future_status::ready);
  EXPECT_TRUE(pending->WaitFor(kLong));
  EXPECT_EQ(pulled.rows[0], 1);
}

TEST_F(ClientThreadTest, CancelsWhatIsNotOverWhenItIsStopped) {
  server_.reset();
  Pulled pulled(placement_, 0);
  const auto under_way = Pull(pulled);
  const auto behind = thread_->Call(
      [](ParameterClient& client) { return client.Open(job::LeaseId(1), {}).status(); });
  EXPECT_FALSE(under_way->WaitFor(std::chrono::milliseconds(1)));
  thread_->Stop();
  EXPECT_THAT(under_way->status(), StatusIs(Code::kCancelled));
  EXPECT_THAT(behind->status(), StatusIs(Code::kCancelled));
  EXPECT_THAT(Pull(pulled)->status(), StatusIs(Code::kCancelled));
}

}  // namespace
}  // namespace edl::ps_client
