#include "backend/testing/fake_backend.h"

#include "backend/exit_cause.h"
#include "backend/testing/conformance.h"
#include "base/testing/status_matchers.h"

namespace edl::backend {
namespace {

using Kind = job::ReplicaEvent::Kind;

// Gives the fake's replicas lives: commands are {verb, argument}.
class FakeSubject final : public ConformanceSubject {
 public:
  FakeSubject() {
    backend_.SetOnLaunch([this](const job::ReplicaSpec& spec) { Live(spec); });
  }
  Backend& backend() override { return backend_; }
  std::vector<std::string> ThatRuns() override { return {"run"}; }
  std::vector<std::string> ThatIgnoresTerm() override { return {"run"}; }
  std::vector<std::string> ThatExits(int code) override { return {"exit", std::to_string(code)}; }
  std::vector<std::string> ThatDiesOf(int signal) override {
    return {"die", std::to_string(signal)};
  }
  std::vector<std::string> ThatPrints(const std::string& text) override { return {"print", text}; }
  std::vector<std::string> ThatCannotStart() override { return {"/no/such/program"}; }
  void KillFromOutside(const job::ReplicaEvent& running, int signal) override {
    EXPECT_EQ(backend_.Exit(running.name, CauseOfSignal(signal)), Ok());
  }

 private:
  void Live(const job::ReplicaSpec& spec) {
    const std::string& verb = spec.command.at(0);
    if (verb == "run") return;
    job::ExitCause cause{.kind = job::ExitCause::Kind::kNotLaunched, .message = "no " + verb};
    if (verb == "exit") cause = CauseOfExit(std::stoi(spec.command.at(1)));
    if (verb == "die") cause = CauseOfSignal(std::stoi(spec.command.at(1)));
    if (verb == "print") {
      backend_.Print(spec.name, spec.command.at(1));
      cause = CauseOfExit(0);
    }
    EXPECT_EQ(backend_.Exit(spec.name, cause), Ok());
  }

  FakeBackend backend_;
};

INSTANTIATE_TEST_SUITE_P(Fake, BackendConformance, testing::Values(MakeSubject([] {
                           return std::make_unique<FakeSubject>();
                         })));

TEST(FakeBackend, DeliversNothingByItselfWhenTheTestDelivers) {
  FakeBackend backend(FakeBackend::Delivery::kByDeliver);
  std::vector<Kind> told;
  backend.Watch([&](const job::ReplicaEvent& event) { told.push_back(event.kind); });
  ASSERT_EQ(backend.Launch({.name = "iris-edljob-worker-0"}), Ok());

  EXPECT_TRUE(told.empty());
  EXPECT_TRUE(backend.DeliverOne());
  EXPECT_THAT(told, testing::ElementsAre(Kind::kSynced));
  backend.Deliver();

  EXPECT_THAT(told, testing::ElementsAre(Kind::kSynced, Kind::kPending, Kind::kRunning));
  EXPECT_FALSE(backend.DeliverOne());
}

TEST(FakeBackend, KeepsHeldLaunchesPendingWithTheirReason) {
  FakeBackend backend(FakeBackend::Delivery::kByDeliver);
  std::vector<job::ReplicaEvent> told;
  backend.Watch([&](const job::ReplicaEvent& event) { told.push_back(event); });
  backend.HoldLaunches("no node has the memory");

  ASSERT_EQ(backend.Launch({.name = "iris-edljob-worker-0"}), Ok());
  backend.Deliver();

  EXPECT_EQ(told.back().kind, Kind::kPending);
  EXPECT_EQ(told.back().reason, "no node has the memory");
  backend.ReleaseLaunches();
  backend.Deliver();
  EXPECT_EQ(told.back().kind, Kind::kRunning);
}

TEST(FakeBackend, RefusesLaunchesWhenTold) {
  FakeBackend backend;
  backend.RefuseLaunches(Unavailable("the API server is away"));

  EXPECT_THAT(backend.Launch({.name = "iris-edljob-worker-0"}), StatusIs(Code::kUnavailable));

  backend.RefuseLaunches(Ok());
  EXPECT_EQ(backend.Launch({.name = "iris-edljob-worker-0"}), Ok());
  EXPECT_EQ(backend.Launched().size(), 1);
}

}  // namespace
}  // namespace edl::backend
