#include "ps_control/ps_controller.h"

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "base/event_loop.h"
#include "base/testing/status_matchers.h"
#include "checkpoint/checkpoint_folder.h"
#include "ps/parameter_server.h"
#include "wire/frame_connection.h"
#include "wire/socket.h"

namespace edl::ps_control {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr job::PsIncarnation kLife(70);

job::PsIncarnation LifeOf(size_t index) { return job::PsIncarnation(kLife.value() + index); }

// Moves only when told to. Thread-safe.
class SteppedClock final : public Clock {
 public:
  Time Now() const override { return Time(Duration(now_)); }
  WallTime WallNow() const override { return WallTime(Duration(now_)); }
  void Advance(Duration by) { now_ += by.count(); }

 private:
  std::atomic<int64_t> now_ = Duration(std::chrono::hours(24)).count();
};

// Real parameter servers, and whatever they answer the master.
class PsControllerTest : public testing::Test {
 protected:
  ~PsControllerTest() override {
    controller_.reset();
    servers_.clear();
    fs::remove_all(folder_);
  }

  void StartServers(size_t count, size_t lanes = 2) {
    for (size_t i = 0; i < count; ++i) {
      servers_.push_back(std::move(*ps::ParameterServer::Start({.host = "127.0.0.1",
                                                                .lanes = lanes,
                                                                .index = i,
                                                                .servers = count,
                                                                .incarnation = LifeOf(i),
                                                                .managed = true,
                                                                .checkpoint_roots = {folder_}},
                                                               clock_)));
      addresses_.push_back("127.0.0.1:" + std::to_string(servers_.back()->port()));
    }
  }
  void StartController(Duration no_progress = seconds(120)) {
    StartController(no_progress, clock_);
  }
  void StartController(Duration no_progress, const Clock& clock) {
    auto started = PsController::Start(
        PsController::Options{.servers = static_cast<int>(addresses_.size()),
                              .token = {},
                              .core = {.folder = folder_, .no_progress = no_progress}},
        [this](int index) -> Result<std::string> {
          const MutexLock lock(mutex_);
          return addresses_.at(static_cast<size_t>(index));
        },
        PsController::Answers{
            .probed =
                [this](master::PsCommandId number, const Result<master::ProbeReply>& reply) {
                  const MutexLock lock(mutex_);
                  probes_.emplace(number.value(), reply);
                },
            .restored =
                [this](master::PsCommandId number, const Status& status) {
                  const MutexLock lock(mutex_);
                  restored_[number.value()] = status;
                },
            .saved =
                [this](master::PsCommandId number, const Status& status) {
                  const MutexLock lock(mutex_);
                  saved_[number.value()] = status;
                },
            .state =
                [this](const job::ServerView& view) {
                  const MutexLock lock(mutex_);
                  ++states_[view.index];
                },
            .alive = [](int, job::PsIncarnation) {}},
        clock);
    ASSERT_OK(started);
    controller_ = std::move(*started);
  }
  // Whether it became so within a minute.
  bool Await(const std::function<bool()>& is_so) {
    for (int i = 0; i < 6000; ++i) {
      {
        const MutexLock lock(mutex_);
        if (is_so()) return true;
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
    return false;
  }
  // Returns after a round that began after the call has ended: a reply is answered within its
  // round, and the next reply in a later round.
  void AwaitRound() {
    for (int i = 0; i < 2; ++i) {
      const uint64_t number = ++last_probe_;
      controller_->Do({master::ProbeServer{master::PsCommandId(number), 0}});
      ASSERT_TRUE(Await([&] { return probes_.contains(number); }));
    }
  }
  void ServeAll() {
    master::ServeAll serve{.ps_epoch = job::PsEpoch(1), .may_push = true};
    serve.covered.ledger = job::LedgerId(5);
    for (size_t i = 0; i < addresses_.size(); ++i) {
      serve.incarnations.push_back(LifeOf(i));
      serve.released.push_back(false);
    }
    controller_->Do({serve});
    ASSERT_TRUE(Await([&] {
      for (size_t i = 0; i < servers_.size(); ++i) {
        if (states_[static_cast<int>(i)] < 1) return false;
      }
      return true;
    }));
  }
  master::SaveAll SaveOf(uint64_t number, const std::string& name) const {
    master::SaveAll save{.number = master::PsCommandId(number),
                         .name = name,
                         .ps_epoch = job::PsEpoch(1),
                         .version = 1};
    for (size_t i = 0; i < addresses_.size(); ++i) save.incarnations.push_back(LifeOf(i));
    save.covered.ledger = job::LedgerId(5);
    return save;
  }
  Status Save(uint64_t number, const std::string& name) {
    controller_->Do({SaveOf(number, name)});
    EXPECT_TRUE(Await([&] { return saved_.contains(number); }));
    return saved_[number];
  }
  Status Restore(uint64_t number, const std::string& name) {
    controller_->Do({master::RestoreServers{.number = master::PsCommandId(number),
                                            .ps_epoch = job::PsEpoch(number),
                                            .servers = {{.index = 0, .incarnation = kLife}},
                                            .checkpoint = name}});
    EXPECT_TRUE(Await([&] { return restored_.contains(number); }));
    return restored_[number];
  }

  SystemClock clock_;
  SteppedClock stepped_;
  const fs::path folder_ =
      fs::path(testing::TempDir()) / fmt::format("ps-controller-{}", getpid()) / "job";
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<ps::ParameterServer>> servers_;
  Mutex mutex_;
  std::map<uint64_t, Result<master::ProbeReply>> probes_;
  std::map<uint64_t, Status> restored_;
  std::map<uint64_t, Status> saved_;
  std::map<int, int> states_;
  uint64_t last_probe_ = 0;
  std::unique_ptr<PsController> controller_;
};

// It takes connections and answers nothing, as a process that was stopped does.
TEST_F(PsControllerTest, AServerThatHangsKeepsNobodyWaiting) {
  StartServers(2);
  const auto hangs = wire::ListenTcp("127.0.0.1", 0);
  ASSERT_TRUE(hangs.ok());
  addresses_[0] = "127.0.0.1:" + std::to_string(hangs->port);
  StartController();
  controller_->Do({master::ProbeServer{master::PsCommandId(1), 0},
                   master::ProbeServer{master::PsCommandId(2), 1}});
  ASSERT_TRUE(Await([&] { return probes_.contains(2); }));
  const MutexLock lock(mutex_);
  EXPECT_FALSE(probes_.contains(1)) << "the one that hangs was asked first";
  EXPECT_EQ(probes_.at(2)->incarnation, kLife.Next());
  EXPECT_EQ(probes_.at(2)->lanes, 2U);
}

TEST_F(PsControllerTest, ASaveNeedsAFolderOfItsOwn) {
  StartServers(1);
  StartController();
  ServeAll();
  EXPECT_EQ(Save(1, "version-1.00000000000000aa.1"), Ok());
  EXPECT_EQ(Save(2, "version-1.00000000000000aa.1").code(), Code::kAlreadyExists);
}

// Answers who and how it is, and never ends what it is asked to save.
class SlowServer {
 public:
  SlowServer()
      : listener_(std::move(*wire::ListenTcp("127.0.0.1", 0))),
        thread_(std::move(*EventLoop::Make(clock_))) {
    thread_.Run([this] {
      const Status watched =
          thread_.loop().Add(listener_.socket.get(), POLLIN, [this] { Accept(); });
      CHECK(watched.ok(), "{}", watched.message());
    });
  }
  ~SlowServer() {
    thread_.Run([this] {
      thread_.loop().Remove(listener_.socket.get());
      connections_.clear();
    });
  }
  uint16_t port() const { return listener_.port; }
  // How many connections there were so far.
  size_t accepted() const { return accepted_; }
  void set_progress(uint64_t bytes) { progress_ = bytes; }
  // Who answers on connections that are made from now on.
  void set_life(job::PsIncarnation life) { life_ = life; }

 private:
  void Accept() {
    auto accepted = wire::Accept(listener_.socket);
    if (!accepted.ok() || !accepted->has_value()) return;
    ++accepted_;
    connections_.push_back(nullptr);
    auto& place = connections_.back();
    place = std::make_unique<wire::FrameConnection>(
        thread_.loop(), std::make_unique<wire::SocketStream>(**std::move(accepted)),
        wire::FrameLimits{},
        [this, &place, life = life_.load()](const wire::Frame& frame) {
          switch (static_cast<wire::MessageType>(frame.header.type)) {
            case wire::MessageType::kHello:
              place->Answer(
                  frame.header,
                  wire::Encode(wire::Welcome{
                      .incarnation = life, .lanes = 1, .servers = 1, .progress_bytes = progress_}));
              break;
            case wire::MessageType::kState:
              place->Answer(frame.header, wire::Encode(wire::StateAnswer{}));
              break;
            case wire::MessageType::kServe:
              place->Answer(frame.header, {});
              break;
            default:
              break;
          }
          return wire::FrameConnection::Handled::kDone;
        },
        [](const Status&) {});
  }

  wire::TcpListener listener_;
  std::atomic<size_t> accepted_ = 0;
  std::atomic<uint64_t> progress_ = 0;
  std::atomic<job::PsIncarnation> life_ = kLife;
  std::list<std::unique_ptr<wire::FrameConnection>> connections_;  // confined to the loop
  SystemClock clock_;
  LoopThread thread_;
};

TEST_F(PsControllerTest, ConnectionsAreKept) {
  SlowServer server;
  addresses_ = {"127.0.0.1:" + std::to_string(server.port())};
  StartController();
  ASSERT_TRUE(Await([&] { return states_[0] >= 4; }));
  EXPECT_EQ(server.accepted(), 2U) << "one to the server and one to its lane";
}

TEST_F(PsControllerTest, ASaveMayTakeAsLongAsItMakesProgress) {
  SlowServer server;
  addresses_ = {"127.0.0.1:" + std::to_string(server.port())};
  StartController(seconds(2), stepped_);
  controller_->Do({SaveOf(1, "version-1.00000000000000aa.1")});
  for (uint64_t i = 1; i <= 4; ++i) {
    server.set_progress(i);
    AwaitRound();
    stepped_.Advance(milliseconds(1500));
    AwaitRound();
    const MutexLock lock(mutex_);
    ASSERT_FALSE(saved_.contains(1)) << "after " << i << " steps: " << saved_[1].message();
  }
  stepped_.Advance(seconds(1));
  ASSERT_TRUE(Await([&] { return saved_.contains(1); })) << "it stands still now";
  EXPECT_EQ(saved_[1].code(), Code::kDeadlineExceeded) << saved_[1];
}

// The address of a slot is its successor's, though the connection to the one before still works.
TEST_F(PsControllerTest, AServerThatWasGivenUpIsNotTakenForItsSuccessor) {
  SlowServer server;
  addresses_ = {"127.0.0.1:" + std::to_string(server.port())};
  StartController();
  controller_->Do({master::ProbeServer{master::PsCommandId(1), 0}});
  ASSERT_TRUE(Await([&] { return probes_.contains(1); }));
  EXPECT_EQ(probes_.at(1)->incarnation, kLife);
  server.set_life(LifeOf(7));
  controller_->Do({master::ProbeServer{master::PsCommandId(2), 0}});
  ASSERT_TRUE(Await([&] { return probes_.contains(2); }));
  EXPECT_EQ(probes_.at(2)->incarnation, LifeOf(7));
}

TEST_F(PsControllerTest, ASaveIsCancelled) {
  SlowServer server;
  addresses_ = {"127.0.0.1:" + std::to_string(server.port())};
  StartController();
  controller_->Do({SaveOf(1, "version-1.00000000000000aa.1")});
  controller_->Do({master::CancelSave{.number = master::PsCommandId(1)}});
  ASSERT_TRUE(Await([&] { return saved_.contains(1); }));
  EXPECT_EQ(saved_[1].code(), Code::kCancelled) << saved_[1];
}

TEST_F(PsControllerTest, WhatOnlyAServerDoesNotSeeIsNoDamage) {
  StartServers(1);
  StartController();
  EXPECT_EQ(Restore(1, "version-1.00000000000000aa.1").code(), Code::kUnavailable)
      << "the folder above it is missing too: its volume is not mounted";
  fs::create_directories(folder_);
  EXPECT_EQ(Restore(2, "version-1.00000000000000aa.1").code(), Code::kNotFound);
}

TEST_F(PsControllerTest, OrphansAreRemoved) {
  StartServers(1);
  StartController();
  const std::string name =
      checkpoint::CheckpointName{.version = 1, .ledger = job::LedgerId(9), .save = 1}.ToText();
  fs::create_directories(folder_ / name);
  controller_->Do({master::CollectOrphans{.ledger = job::LedgerId(9), .keep = {}, .below = 2}});
  EXPECT_TRUE(Await([&] { return !fs::exists(folder_ / name); }));
}

}  // namespace
}  // namespace edl::ps_control
