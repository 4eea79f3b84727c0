#include "ps_control/ps_controller_core.h"

#include <utility>
#include <variant>

namespace edl::ps_control {

PsControllerCore::PsControllerCore(const Options& options, const Channels& channels,
                                   CheckpointStore& store, const Answers& answers,
                                   const CallAfter& call_after, const Clock& clock)
    : context_{.servers = static_cast<int>(channels.watches.size()),
               .folder = options.folder,
               .no_progress = options.no_progress,
               .store = store,
               .clock = clock},
      restore_channel_(channels.restores),
      save_channel_(channels.saves),
      store_(store),
      restores_(answers.restored),
      saves_(answers.saved) {
  for (size_t index = 0; index < channels.watches.size(); ++index) {
    watches_.push_back(std::make_unique<ServerWatch>(
        static_cast<int>(index), context_.servers, *channels.watches[index],
        ServerWatch::Events{.probed = answers.probed,
                            .state = answers.state,
                            .alive = answers.alive,
                            .round = [this](bool progressed) { OnRound(progressed); }},
        call_after, clock));
  }
  for (const auto& watch : watches_) watch->Start();
}

void PsControllerCore::Do(std::vector<master::ServerCommand> commands) {
  for (const master::ServerCommand& command : commands) {
    std::visit([this](const auto& some) { Handle(some); }, command);
  }
}

void PsControllerCore::Handle(const master::ProbeServer& probe) {
  watches_.at(static_cast<size_t>(probe.index))->Probe(probe.number);
}

void PsControllerCore::Handle(const master::RestoreServers& restore) {
  // The master no longer waits for those before.
  restores_.CancelAll();
  restores_.Add(std::make_unique<RestoreOperation>(restore, context_, restore_channel_));
}

void PsControllerCore::Handle(const master::ServeAll& serve) {
  const auto shared = std::make_shared<const master::ServeAll>(serve);
  ++serve_number_;
  for (const auto& watch : watches_) watch->Serve(shared, serve_number_);
}

void PsControllerCore::Handle(const master::SaveAll& save) {
  saves_.Add(std::make_unique<SaveOperation>(save, context_, save_channel_));
}

void PsControllerCore::Handle(const master::CancelSave& cancel) { saves_.Cancel(cancel.number); }

void PsControllerCore::Handle(const master::DropCheckpoint& drop) { store_.Remove(drop); }

void PsControllerCore::Handle(const master::CollectOrphans& collect) { store_.Remove(collect); }

void PsControllerCore::OnRound(bool progressed) {
  restores_.OnRound(progressed);
  saves_.OnRound(progressed);
}

}  // namespace edl::ps_control
