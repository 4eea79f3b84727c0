#include "simulation/simulated_ps_controller.h"

#include <utility>
#include <variant>

namespace edl::master {
namespace {

namespace fs = std::filesystem;

class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(const VirtualTime& time) : time_(time) {}
  Time Now() const override { return time_.now(); }
  WallTime WallNow() const override { return WallTime(time_.now().time_since_epoch()); }

 private:
  const VirtualTime& time_;
};

// The storage as one incarnation of the master sees it.
class SimulatedStore final : public ps_control::CheckpointStore {
 public:
  SimulatedStore(SimulatedStorage& storage, VirtualTime& time,
                 std::shared_ptr<const bool> master_alive)
      : storage_(storage), time_(time), master_alive_(std::move(master_alive)) {}

  void MakeFolder(const fs::path& folder, OnDone done) override {
    Later([this, folder, done = std::move(done)] { done(storage_.MakeFolder(folder)); });
  }
  void WriteManifest(const fs::path& folder, const checkpoint::Manifest& manifest,
                     OnDone done) override {
    Later([this, folder, manifest, done = std::move(done)] {
      done(storage_.WriteManifest(folder, manifest));
    });
  }
  void ReadManifest(const fs::path& folder, OnManifest done) override {
    Later([this, folder, done = std::move(done)] { done(storage_.ReadManifest(folder)); });
  }
  void Remove(const DropCheckpoint& drop) override {
    Later([this, drop] { storage_.Remove(drop); });
  }
  void Remove(const CollectOrphans& collect) override {
    Later([this, collect] { storage_.Remove(collect); });
  }

 private:
  void Later(std::function<void()> run) {
    time_.At(time_.Between(1, 20), [alive = master_alive_, run = std::move(run)] {
      if (*alive) run();
    });
  }

  SimulatedStorage& storage_;
  VirtualTime& time_;
  const std::shared_ptr<const bool> master_alive_;
};

}  // namespace

struct SimulatedPsController::Life {
  using Connections = SimulatedChannel::Connections;

  Life(SimulatedNetwork& network, SimulatedStorage& storage, size_t servers, Duration no_progress,
       const ps_control::PsControllerCore::Answers& answers)
      : clock(network.time()),
        store(storage, network.time(), alive),
        saves(Connections::kNew, network, alive),
        restores(Connections::kNew, network, alive) {
    ps_control::PsControllerCore::Channels channels{
        .watches = {}, .restores = restores, .saves = saves};
    for (size_t i = 0; i < servers; ++i) {
      watches.push_back(std::make_unique<SimulatedChannel>(Connections::kKept, network, alive));
      channels.watches.push_back(watches.back().get());
    }
    core = std::make_unique<ps_control::PsControllerCore>(
        ps_control::PsControllerCore::Options{.folder = SimulatedStorage::kRoot,
                                              .no_progress = no_progress},
        channels, store, answers,
        [&time = network.time(), alive = alive](Duration delay, std::function<void()> call) {
          time.At(delay, [alive, call = std::move(call)] {
            if (*alive) call();
          });
        },
        clock);
  }
  ~Life() { *alive = false; }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  // Shared with all events, which do nothing once it is false.
  const std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  const VirtualClock clock;
  SimulatedStore store;
  SimulatedChannel saves;
  SimulatedChannel restores;
  std::vector<std::unique_ptr<SimulatedChannel>> watches;
  std::unique_ptr<ps_control::PsControllerCore> core;
};

SimulatedPsController::SimulatedPsController(const Plan& plan, Mutant mutant,
                                             SimulatedServers& servers, VirtualTime& time,
                                             SimulationResult& sums, Master master)
    : plan_(plan),
      servers_(servers),
      time_(time),
      sums_(sums),
      master_(std::move(master)),
      storage_(plan, servers.batches(), time, sums),
      network_(plan, mutant, servers, storage_, time, sums) {}

SimulatedPsController::~SimulatedPsController() { Crash(); }

void SimulatedPsController::Start() {
  life_ = std::make_unique<Life>(network_, storage_, servers_.layout().servers, plan_.no_progress,
                                 MakeAnswers());
}

void SimulatedPsController::Crash() {
  life_.reset();
  restores_.clear();
  saves_.clear();
}

void SimulatedPsController::Do(const std::vector<ServerCommand>& commands) {
  for (const ServerCommand& command : commands) {
    if (const auto* restore = std::get_if<RestoreServers>(&command)) {
      restores_[restore->number] = *restore;
    } else if (const auto* save = std::get_if<SaveAll>(&command)) {
      saves_[save->number] = *save;
    }
  }
  life_->core->Do(commands);
}

void SimulatedPsController::Answer(std::function<void(Core&)> answer) {
  time_.At(time_.Between(1, 30), [this, life = master_.life(), answer = std::move(answer)] {
    if (master_.life() == life) master_.run(answer);
  });
}

ps_control::PsControllerCore::Answers SimulatedPsController::MakeAnswers() {
  ps_control::PsControllerCore::Answers answers;
  answers.probed = [this](PsCommandId number, const Result<ProbeReply>& reply) {
    Answer([number, reply](Core& core) { core.OnProbed(number, reply); });
  };
  answers.restored = [this](PsCommandId number, const Status& status) {
    Answer([this, restore = restores_.at(number), status](Core& core) {
      OnRestored(core, restore, status);
    });
  };
  answers.saved = [this](PsCommandId number, const Status& status) {
    if (status.code() == Code::kCancelled) ++sums_.cancelled;
    if (status.code() == Code::kDeadlineExceeded) ++sums_.stood_still;
    Answer([this, save = saves_.at(number), status](Core& core) { OnSaved(core, save, status); });
  };
  answers.state = [this](const job::ServerView& view) {
    Answer([view](Core& core) { core.OnServerState(view); });
  };
  answers.alive = [this](int index, PsIncarnation incarnation) {
    Answer([index, incarnation](Core& core) { core.OnServerAlive(index, incarnation); });
  };
  return answers;
}

void SimulatedPsController::OnRestored(Core& core, const RestoreServers& restore,
                                       const Status& status) {
  time_.Note("restored for epoch {} from '{}': {}", restore.ps_epoch, restore.checkpoint,
             status.ToString());
  const size_t before = core.parameters().checkpoints().size();
  core.OnRestored(restore.number, status);
  if (core.parameters().checkpoints().size() < before) ++sums_.fallbacks;
  if (status.ok() && restore.ps_epoch > PsEpoch(1)) ++sums_.restores;
}

void SimulatedPsController::OnSaved(Core& core, const SaveAll& save, const Status& status) {
  core.OnSaved(save.number, status);
  const auto& checkpoints = core.parameters().checkpoints();
  const bool committed = !checkpoints.empty() && checkpoints.back().name == save.name;
  time_.Note("saved {}: {}, {}", save.name, status.ToString(), committed ? "committed" : "void");
  if (!committed) ++(status.ok() ? sums_.voids : sums_.failed_saves);
}

}  // namespace edl::master
