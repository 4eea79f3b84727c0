// Servers that hang, vanish without a word, keep requests waiting or come back as another process.

#include <atomic>
#include <filesystem>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/event_loop.h"
#include "base/testing/await.h"
#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "checkpoint/shard_set.h"
#include "ps/parameter_server.h"
#include "ps_client/ask.h"
#include "ps_client/parameter_client.h"
#include "ps_client/testing/relay.h"
#include "wire/frame_connection.h"

namespace edl::ps_client {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr wire::ShardKey kShard{
    .ledger = job::LedgerId(5), .dataset = job::DatasetId(1), .generation = 1};

class LivenessTest : public testing::Test {
 protected:
  std::unique_ptr<ps::ParameterServer> StartServer(job::PsIncarnation incarnation,
                                                   uint16_t port = 0, bool managed = false) {
    auto server = ps::ParameterServer::Start({.host = "127.0.0.1",
                                              .port = port,
                                              .lanes = 2,
                                              .incarnation = incarnation,
                                              .managed = managed,
                                              .checkpoint_roots = {testing::TempDir()}},
                                             system_);
    EXPECT_OK(server);
    return *std::move(server);
  }
  std::unique_ptr<ParameterClient> Connect(uint16_t port, Transport transport = Transport::kTcp,
                                           bool follows_restarts = false,
                                           Duration timeout = seconds(60)) {
    auto client = ParameterClient::Connect({.servers = {{"127.0.0.1", port}},
                                            .transport = transport,
                                            .timeout = timeout,
                                            .follows_restarts = follows_restarts},
                                           clock_);
    EXPECT_OK(client);
    EXPECT_OK((*client)->Declare(
        {.text = R"({"tables": [{"name": "t", "dim": 1}]})", .table_dims = {1}}));
    return *std::move(client);
  }
  // Lets time pass, a second at a time, until the operation is done. How many seconds that took.
  int SecondsUntilDone(ParameterClient& client, ParameterClient::Ticket ticket, int at_most) {
    int passed = 0;
    for (; passed < at_most; ++passed) {
      // What is on its way in real time has some.
      for (int i = 0; i < 15 && !client.IsDone(ticket); ++i) {
        client.Move();
        if (!client.IsDone(ticket)) poll(nullptr, 0, 1);
      }
      if (client.IsDone(ticket)) break;
      clock_.Advance(seconds(1));
    }
    return passed;
  }
  Status Serve(uint16_t port, job::PsIncarnation incarnation, job::PsEpoch epoch) {
    const LinkOptions to{.host = "127.0.0.1", .port = port, .caller = "a test"};
    std::vector<Question> questions;
    for (const LinkOptions& lane :
         LanesOf(to, {.incarnation = incarnation, .lanes = 2, .servers = 1, .index = 0})) {
      questions.push_back(
          {.to = lane,
           .meta = wire::Encode(
               wire::Serve{.incarnation = incarnation,
                           .ps_epoch = epoch,
                           .may_push = true,
                           .covered = checkpoint::ShardSet{.ledger = job::LedgerId(5)}.ToJson()})});
    }
    return Ask(wire::MessageType::kServe, questions, {.timeout = seconds(30)}, system_).status();
  }

  const SystemClock system_{};
  FakeClock clock_;
};

TEST_F(LivenessTest, AConnectionThatBrokeSilentlyIsReplaced) {
  const auto server = StartServer(job::PsIncarnation(1));
  Relay relay(server->port());
  const auto client = Connect(relay.port(), Transport::kTcp, false, seconds(1000));
  relay.CutExisting();

  const ParameterClient::Ticket pull = client->StartPull({});

  EXPECT_LT(SecondsUntilDone(*client, pull, 500), 500);
  EXPECT_OK(client->WaitPull(pull));
}

TEST_F(LivenessTest, AServerThatHangsFailsRequestsAfterTheTimeout) {
  const auto server = StartServer(job::PsIncarnation(1));
  Relay relay(server->port());
  const auto client = Connect(relay.port());
  relay.CutAll(true);

  const ParameterClient::Ticket pull = client->StartPull({});
  const int passed = SecondsUntilDone(*client, pull, 100);

  EXPECT_GE(passed, 59);
  EXPECT_LE(passed, 62);
  const Status pulled = client->WaitPull(pull);
  EXPECT_THAT(pulled, StatusIs(Code::kDeadlineExceeded)) << pulled;
  EXPECT_THAT(pulled.message(), HasSubstr(std::to_string(relay.port())));
}

TEST_F(LivenessTest, AServerThatHangsForAWhileAnswersInTheEnd) {
  const auto server = StartServer(job::PsIncarnation(1));
  Relay relay(server->port());
  const auto client = Connect(relay.port(), Transport::kTcp, false, seconds(1000));
  relay.CutAll(true);
  const ParameterClient::Ticket open = client->StartOpen(job::LeaseId(1), kShard);
  SecondsUntilDone(*client, open, 25);
  ASSERT_FALSE(client->IsDone(open));

  relay.CutAll(false);

  SecondsUntilDone(*client, open, 500);
  const auto opened = client->WaitOpen(open);
  ASSERT_OK(opened);
  EXPECT_EQ(opened->watermark, 0U);
}

TEST_F(LivenessTest, AServerThatKeepsARequestWaitingIsNotTakenForLost) {
  const auto server = StartServer(job::PsIncarnation(1), 0, true);
  auto connected = ParameterClient::Connect(
      {.servers = {{"127.0.0.1", server->port()}}, .timeout = std::chrono::hours(100)}, clock_);
  ASSERT_OK(connected);
  ParameterClient& client = **connected;
  const ParameterClient::Ticket pull = client.StartPull({});
  SecondsUntilDone(client, pull, 60);
  ASSERT_FALSE(client.IsDone(pull));

  ASSERT_OK(Serve(server->port(), job::PsIncarnation(1), job::PsEpoch(1)));

  EXPECT_LT(SecondsUntilDone(client, pull, 500), 500);
  EXPECT_OK(client.WaitPull(pull));
}

// On TCP and on shared memory: what ends is noticed although nothing is read meanwhile.
TEST_F(LivenessTest, AConnectionWhoseRequestWaitsEndsWithItsClient) {
  for (const Transport transport : {Transport::kTcp, Transport::kSharedMemory}) {
    const auto server = StartServer(job::PsIncarnation(1), 0, true);
    auto client = std::move(*ParameterClient::Connect(
        {.servers = {{"127.0.0.1", server->port()}}, .transport = transport}, system_));
    const ParameterClient::Ticket pull = client->StartPull({});
    ASSERT_OK(AwaitPolling("a request that waits at each lane", [&] {
      client->Move();
      return server->State()[0].requests_waiting > 0 && server->State()[1].requests_waiting > 0;
    }));
    ASSERT_FALSE(client->IsDone(pull));

    client.reset();

    EXPECT_OK(AwaitPolling("the end of both connections", [&] {
      return server->State()[0].connections + server->State()[1].connections == 0;
    }));
  }
}

TEST_F(LivenessTest, ARestartedServerIsAnErrorBeforeItsRowsAreRead) {
  auto server = StartServer(job::PsIncarnation(1));
  const uint16_t port = server->port();
  const auto client = Connect(port);
  ASSERT_OK(client->WaitPull(client->StartPull({})));
  server.reset();
  server = StartServer(job::PsIncarnation(2), port);
  Keys keys(client->placement());
  keys.Assign(std::vector<int64_t>{1, 2, 3});
  std::vector<float> rows(3);
  const PullSpec spec{.tables = {{.keys = &keys, .rows = rows.data()}}};

  const Status pulled = client->WaitPull(client->StartPull(spec));

  EXPECT_THAT(pulled, StatusIs(Code::kAborted)) << pulled;
  EXPECT_THAT(pulled.message(), HasSubstr("was restarted"));
  EXPECT_EQ(server->State()[0].rows + server->State()[1].rows, 0U);
  EXPECT_OK(client->WaitPull(client->StartPull(spec))) << "told once";
  EXPECT_EQ(client->incarnations()[0], job::PsIncarnation(2));
}

TEST_F(LivenessTest, ARestartedServerThatThisClientRestoredIsNoError) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("liveness-{}", getpid());
  auto server = StartServer(job::PsIncarnation(1));
  const uint16_t port = server->port();
  const auto client = Connect(port);
  const auto saved = client->Save(folder);
  ASSERT_OK(saved);
  server.reset();
  server = StartServer(job::PsIncarnation(2), port);

  const auto restored = client->Restore(folder);

  std::filesystem::remove_all(folder);
  ASSERT_OK(restored);
  EXPECT_OK(client->WaitPull(client->StartPull({})));
}

TEST_F(LivenessTest, ARestartedServerIsAcceptedIfAMasterRestoresIt) {
  auto server = StartServer(job::PsIncarnation(1));
  const uint16_t port = server->port();
  const auto client = Connect(port, Transport::kTcp, true);
  server.reset();
  server = StartServer(job::PsIncarnation(2), port);
  EXPECT_OK(client->WaitPull(client->StartPull({})));
}

TEST_F(LivenessTest, AServersSuccessorOnAnotherMachineIsReachedByTcp) {
  auto server = StartServer(job::PsIncarnation(1));
  const uint16_t port = server->port();
  const auto client = Connect(port, Transport::kAuto, true);
  EXPECT_EQ(client->servers_through_shared_memory(), 1U);
  server.reset();
  server = StartServer(job::PsIncarnation(2));
  // Nobody listens on the Unix name of this port any more.
  const Relay relay(server->port(), port);

  EXPECT_OK(client->WaitPull(client->StartPull({})));

  EXPECT_EQ(client->incarnations()[0], job::PsIncarnation(2));
  EXPECT_EQ(client->servers_through_shared_memory(), 0U);
}

TEST_F(LivenessTest, AServersSuccessorOnThisMachineIsReachedBySharedMemoryAgain) {
  auto server = StartServer(job::PsIncarnation(1));
  const uint16_t port = server->port();
  const auto client = Connect(port, Transport::kAuto, true);
  server.reset();
  server = StartServer(job::PsIncarnation(2), port);
  EXPECT_OK(client->WaitPull(client->StartPull({})));
  EXPECT_EQ(client->servers_through_shared_memory(), 1U);
}

// Welcomes everybody, and refuses all else for now, as a server that its master no longer reaches.
class Refuser {
 public:
  Refuser() {
    thread_.Run([this] {
      const Status watched =
          thread_.loop().Add(listener_.socket.get(), POLLIN, [this] { Accept(); });
      EXPECT_OK(watched);
    });
  }
  ~Refuser() {
    thread_.Run([this] {
      thread_.loop().Remove(listener_.socket.get());
      connections_.clear();
    });
  }
  Refuser(const Refuser&) = delete;
  Refuser& operator=(const Refuser&) = delete;

  uint16_t port() const { return listener_.port; }
  int refused() const { return refused_; }

 private:
  void Accept() {
    auto accepted = wire::Accept(listener_.socket);
    if (!accepted.ok() || !accepted->has_value()) return;
    auto& slot = connections_.emplace_back();
    slot = std::make_unique<wire::FrameConnection>(
        thread_.loop(), std::make_unique<wire::SocketStream>(**std::move(accepted)),
        wire::FrameLimits{},
        [this, &slot](const wire::Frame& frame) {
          if (frame.header.type == static_cast<uint8_t>(wire::MessageType::kHello)) {
            slot->Answer(frame.header,
                         wire::Encode(wire::Welcome{
                             .incarnation = job::PsIncarnation(1), .lanes = 1, .servers = 1}));
          } else {
            ++refused_;
            slot->Refuse(frame.header, Unavailable("no master for 10 s"));
          }
          return wire::FrameConnection::Handled::kDone;
        },
        [](const Status&) {});
  }

  wire::TcpListener listener_ = *wire::ListenTcp("127.0.0.1", 0);
  std::list<std::unique_ptr<wire::FrameConnection>> connections_;
  std::atomic<int> refused_ = 0;
  SystemClock clock_;
  LoopThread thread_{std::move(*EventLoop::Make(clock_))};
};

TEST_F(LivenessTest, AServerThatRefusesForNowIsAskedAgainWithPauses) {
  const Refuser server;
  const auto client = std::move(*ParameterClient::Connect(
      {.servers = {{"127.0.0.1", server.port()}}, .timeout = std::chrono::milliseconds(1500)},
      system_));
  const Status pulled = client->WaitPull(client->StartPull({}));
  EXPECT_THAT(pulled, StatusIs(Code::kUnavailable)) << pulled;
  EXPECT_THAT(pulled.message(), HasSubstr("no master for 10 s"));
  EXPECT_GE(server.refused(), 2);
  EXPECT_LE(server.refused(), 15);
}

TEST_F(LivenessTest, AskFailsWhenTheServerHangs) {
  const auto server = StartServer(job::PsIncarnation(1));
  Relay relay(server->port());
  const LinkOptions to{.host = "127.0.0.1",
                       .port = relay.port(),
                       .caller = "a test",

                       .lanes_in_job = 2};
  relay.CutAll(true);
  const auto answers = Ask(wire::MessageType::kState, {{.to = to, .meta = ""}},
                           {.silence = std::chrono::milliseconds(300)}, system_);
  EXPECT_THAT(answers, StatusIs(Code::kDeadlineExceeded)) << answers.status();
}

}  // namespace
}  // namespace edl::ps_client
