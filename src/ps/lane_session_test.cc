#include "ps/lane_session.h"

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/shard_set.h"
#include "wire/frame_reader.h"
#include "wire/socket.h"
#include "wire/testing/sockets.h"

namespace edl::ps {
namespace {

using ::testing::HasSubstr;
using wire::MessageType;

constexpr job::PsIncarnation kIncarnation(7);
constexpr const char* kParameters = R"({"tables": [{"name": "t", "dim": 1}]})";

// The client's end of a connection. Reads fail after a minute without data.
class Peer {
 public:
  explicit Peer(FileDescriptor socket) : socket_(std::move(socket)) {
    const timeval minute{.tv_sec = 60, .tv_usec = 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
  }

  void Send(MessageType type, const std::string& meta,
            std::span<const std::byte> tensors = {}) const {
    const size_t meta_bytes = tensors.empty() ? meta.size() : wire::AlignedUp(meta.size());
    const auto header = wire::EncodeHeader({.type = static_cast<uint8_t>(type),
                                            .request = 1,
                                            .body_bytes = meta_bytes + tensors.size(),
                                            .meta_bytes = static_cast<uint32_t>(meta.size())});
    std::string bytes(reinterpret_cast<const char*>(header.data()), header.size());
    bytes += meta;
    bytes.resize(header.size() + meta_bytes);
    bytes.append(reinterpret_cast<const char*>(tensors.data()), tensors.size());
    ASSERT_EQ(write(socket_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  // The next answer. A refusal is the error that it contains. Unavailable: the connection was
  // closed, or nothing came for a minute.
  Result<wire::Frame> Receive() {
    while (true) {
      if (std::optional<wire::Frame> frame = reader_.Next()) {
        if (frame->header.type == static_cast<uint8_t>(MessageType::kRefusal)) {
          return wire::DecodeRefusal(frame->meta());
        }
        return *std::move(frame);
      }
      const std::span<std::byte> room = reader_.Room();
      const ssize_t got = read(socket_.get(), room.data(), room.size());
      if (got <= 0) return Unavailable("read returned {}", got);
      EDL_RETURN_IF_ERROR(reader_.Add(static_cast<size_t>(got)));
    }
  }

  template <typename Answer>
  Result<Answer> Receive() {
    EDL_ASSIGN_OR_RETURN(const wire::Frame frame, Receive());
    Answer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(frame.meta(), answer));
    return answer;
  }

 private:
  const FileDescriptor socket_;
  wire::FrameReader reader_;
};

// A lane on its own thread, with sessions over socket pairs.
class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    serving_.incarnation = kIncarnation;
    serving_.on_change = [this] {
      for (const auto& session : sessions_) session->Resume();
    };
    lane_thread_.Run([&] {
      saver_.emplace(
          lane_.state(), lane_thread_.loop(), disk_.loop(), clock_, [] {},
          LaneSaver::Options{.buffer_bytes = size_t{1} << 30});
      restorer_.emplace(lane_thread_.loop(), checkpoint::CheckpointFiles::Anywhere());
    });
  }
  ~SessionTest() override {
    lane_thread_.Run([&] {
      sessions_.clear();
      restorer_.reset();
      saver_.reset();
    });
    disk_.Run([] {});
  }

  // Connects, and reads the welcome.
  std::unique_ptr<Peer> Connect() {
    std::array<FileDescriptor, 2> ends = wire::SocketPair();
    lane_thread_.Run([&] {
      const SessionContext context{.loop = lane_thread_.loop(),
                                   .lane = lane_,
                                   .saver = *saver_,
                                   .restorer = *restorer_,
                                   .serving = serving_,
                                   .counters = counters_,
                                   .clock = clock_,
                                   .limits = {}};
      sessions_.push_back(std::make_unique<LaneSession>(
          context, std::make_unique<wire::SocketStream>(std::move(ends[0])),
          wire::FrameHeader{.type = static_cast<uint8_t>(MessageType::kHello)},
          wire::Welcome{.incarnation = kIncarnation}, [](const Status&) {}));
    });
    auto peer = std::make_unique<Peer>(std::move(ends[1]));
    const auto welcome = peer->Receive<wire::Welcome>();
    EXPECT_OK(welcome);
    EXPECT_EQ(welcome.ok() ? welcome->incarnation : job::PsIncarnation(), kIncarnation);
    return peer;
  }
  static void Declare(Peer& peer) {
    peer.Send(MessageType::kDeclare, wire::Encode(wire::Declare{.text = kParameters}));
    ASSERT_OK(peer.Receive());
  }
  // Pulls the row of id 1.
  static void SendPull(const Peer& peer) {
    const std::vector<int64_t> ids = {1};
    peer.Send(MessageType::kPull, wire::Encode(wire::Pull{.tables = {{.ids = 1}}}),
              std::as_bytes(std::span(ids)));
  }
  // The number of requests that wait. Synchronizes with the lane's thread.
  size_t RequestsWaiting() {
    size_t waiting = 0;
    lane_thread_.Run([&] {
      for (const auto& session : sessions_) waiting += session->has_request_waiting() ? 1 : 0;
    });
    return waiting;
  }

  const TemporaryFolder folder_;
  const SystemClock clock_;
  Lane lane_{wire::Placement(1), job::LaneInJob(0)};
  ServingState serving_;
  LaneCounters counters_;
  std::optional<LaneSaver> saver_;
  std::optional<LaneRestorer> restorer_;
  std::vector<std::unique_ptr<LaneSession>> sessions_;
  LoopThread disk_{std::move(*EventLoop::Make(clock_))};
  LoopThread lane_thread_{std::move(*EventLoop::Make(clock_))};
};

TEST_F(SessionTest, AnswersAPullAndCountsIt) {
  const auto peer = Connect();
  Declare(*peer);
  SendPull(*peer);
  ASSERT_OK_AND_ASSIGN(const wire::Frame frame, peer->Receive());
  EXPECT_EQ(frame.tensors().size(), wire::AlignedUp(sizeof(float)));
  EXPECT_EQ(counters_.pulls, 1U);
  EXPECT_EQ(counters_.rows_pulled, 1U);
}

TEST_F(SessionTest, AnswersAnInvalidRequestWithAnErrorAndGoesOn) {
  const auto peer = Connect();
  SendPull(*peer);
  EXPECT_THAT(peer->Receive(),
              StatusIs(Code::kInvalidArgument, HasSubstr("table 0 was not declared")));
  peer->Send(static_cast<MessageType>(99), "");
  EXPECT_THAT(peer->Receive(), StatusIs(Code::kUnimplemented, HasSubstr("99")));
  EXPECT_EQ(counters_.refusals, 2U);
  Declare(*peer);
}

TEST_F(SessionTest, KeepsRequestsWaitingUntilTheMasterLetsItServe) {
  serving_.managed = true;
  serving_.serves = serving_.may_push = false;
  const auto worker = Connect();
  worker->Send(MessageType::kDeclare, wire::Encode(wire::Declare{.text = kParameters}));
  ASSERT_OK(AwaitPolling("a request that waits", [&] { return RequestsWaiting() == 1; }));

  const auto master = Connect();
  master->Send(MessageType::kServe,
               wire::Encode(wire::Serve{
                   .incarnation = kIncarnation,
                   .ps_epoch = job::PsEpoch(3),
                   .covered = checkpoint::ShardSet{.ledger = job::LedgerId(1)}.ToJson()}));
  ASSERT_OK(master->Receive());

  EXPECT_OK(worker->Receive()) << "the declaration";
  worker->Send(MessageType::kOpen, wire::Encode(wire::Open{.lease = job::LeaseId(1)}));
  ASSERT_OK(AwaitPolling("an Open that waits", [&] { return RequestsWaiting() == 1; }));
  lane_thread_.Run([&] { EXPECT_EQ(serving_.opens_waiting, 1U); });
}

TEST_F(SessionTest, RejectsServeForAnotherIncarnation) {
  serving_.managed = true;
  serving_.serves = false;
  const auto master = Connect();
  master->Send(MessageType::kServe, wire::Encode(wire::Serve{.incarnation = kIncarnation.Next()}));
  EXPECT_THAT(master->Receive(), StatusIs(Code::kFailedPrecondition, HasSubstr("incarnation 8")));
  lane_thread_.Run([&] { EXPECT_FALSE(serving_.serves); });
}

TEST_F(SessionTest, AcceptsNoChangesWhileFencedAndAnswersPulls) {
  const auto worker = Connect();
  Declare(*worker);
  lane_thread_.Run([&] { serving_.fenced = true; });
  SendPull(*worker);
  EXPECT_OK(worker->Receive());
  worker->Send(MessageType::kOpen, wire::Encode(wire::Open{.lease = job::LeaseId(1)}));
  ASSERT_OK(AwaitPolling("an Open that waits", [&] { return RequestsWaiting() == 1; }));

  // A State request is a sign of life of the master.
  const auto master = Connect();
  master->Send(MessageType::kState, "");
  EXPECT_OK(master->Receive<wire::StateAnswer>());

  EXPECT_OK(worker->Receive<wire::OpenAnswer>());
}

TEST_F(SessionTest, DropsWorkersAndNotTheMaster) {
  const auto worker = Connect();
  Declare(*worker);
  const auto master = Connect();
  lane_thread_.Run([&] {
    for (const auto& session : sessions_) session->DropWorker();
  });
  EXPECT_THAT(worker->Receive(), StatusIs(Code::kUnavailable));
  master->Send(MessageType::kState, "");
  EXPECT_OK(master->Receive<wire::StateAnswer>());
}

TEST_F(SessionTest, SavesAndRestoresTheLane) {
  const std::string path = (folder_.path() / "part").string();
  const auto worker = Connect();
  Declare(*worker);
  SendPull(*worker);  // makes a row
  ASSERT_OK(worker->Receive());
  const auto other = Connect();
  other->Send(MessageType::kSave, wire::Encode(wire::Save{.path = path}));
  ASSERT_OK_AND_ASSIGN(const auto saved, other->Receive<wire::SaveAnswer>());
  EXPECT_GT(saved.bytes, 0U);

  other->Send(MessageType::kRestore, wire::Encode(wire::Restore{.paths = {path}}));

  ASSERT_OK_AND_ASSIGN(const auto restored, other->Receive<wire::RestoreAnswer>());
  EXPECT_EQ(restored.rows, 1U);
  SendPull(*worker);
  EXPECT_OK(worker->Receive()) << "its declaration holds for the restored lane";
}

TEST_F(SessionTest, RejectsARestoreOfATrainedLane) {
  const auto peer = Connect();
  Declare(*peer);
  peer->Send(MessageType::kOpen, wire::Encode(wire::Open{.lease = job::LeaseId(1)}));
  ASSERT_OK(peer->Receive());
  peer->Send(MessageType::kRestore, wire::Encode(wire::Restore{}));
  EXPECT_THAT(peer->Receive(), StatusIs(Code::kFailedPrecondition, HasSubstr("was trained since")));
}

}  // namespace
}  // namespace edl::ps
