#include "ps_control/ps_controller.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/ranges.h>

#include "base/host_port.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/manifest.h"
#include "wire/messages.h"
#include "wire/placement.h"

namespace edl::ps_control {
namespace {

namespace fs = std::filesystem;
using ps_client::LaneAnswer;
using ps_client::Question;

constexpr ps_client::AskOptions kShort{.timeout = std::chrono::seconds(5)};

Result<ps_client::LinkOptions> ToLink(const std::string& address) {
  EDL_ASSIGN_OR_RETURN(HostPort server, ParseHostPort(address));
  ps_client::LinkOptions to;
  to.host = std::move(server.host);
  to.port = server.port;
  to.caller = "the master";
  return to;
}

}  // namespace

PsController::PsController(Options options, AddressOf address_of, Answers answers,
                           const Clock& clock)
    : options_(std::move(options)),
      address_of_(std::move(address_of)),
      answers_(std::move(answers)),
      clock_(clock) {
  threads_.emplace_back([this] { RestoreAllAsked(); });
  threads_.emplace_back([this] { SaveAllAsked(); });
  threads_.emplace_back([this] { DoFolderWork(); });
  for (int index = 0; index < options_.servers; ++index) {
    watches_.push_back(std::make_unique<ServerWatch>(
        index, options_.servers, [this](int server) { return LinkTo(server); },
        ServerWatch::Answers{.probed = answers_.probed,
                             .state = answers_.state,
                             .alive = answers_.alive,
                             .round = [this](bool progressed) { OnRound(progressed); }},
        clock_));
  }
}

PsController::~PsController() {
  stop_ = true;
  {
    const MutexLock lock(mutex_);
    for (const std::weak_ptr<Long>& weak : longs_) {
      if (const LongPtr run = weak.lock()) run->stop = true;
    }
    changed_.NotifyAll();
  }
  watches_.clear();
  for (std::thread& thread : threads_) thread.join();
}

PsController::LongPtr PsController::Begin(uint64_t number) {
  auto run = std::make_shared<Long>();
  run->number = number;
  run->progress_at = clock_.Now();
  return run;
}

void PsController::Do(std::vector<master::ServerCommand> commands) {
  if (commands.empty()) return;
  const MutexLock lock(mutex_);
  std::erase_if(longs_, [](const std::weak_ptr<Long>& weak) { return weak.expired(); });
  for (master::ServerCommand& command : commands) {
    if (auto* serve = std::get_if<master::ServeAll>(&command)) {
      const auto shared = std::make_shared<const master::ServeAll>(std::move(*serve));
      ++serve_number_;
      for (const auto& watch : watches_) watch->Serve(shared, serve_number_);
    } else if (auto* save = std::get_if<master::SaveAll>(&command)) {
      saves_.push_back({std::move(*save), Begin(save->number)});
      longs_.emplace_back(saves_.back().run);
    } else if (const auto* cancel = std::get_if<master::CancelSave>(&command)) {
      for (const std::weak_ptr<Long>& weak : longs_) {
        const LongPtr run = weak.lock();
        if (run != nullptr && run->number == cancel->number) run->stop = true;
      }
    } else if (const auto* probe = std::get_if<master::ProbeServer>(&command)) {
      watches_.at(static_cast<size_t>(probe->index))->Probe(probe->number);
    } else if (auto* restore = std::get_if<master::RestoreServers>(&command)) {
      // Whoever waits for the one before has given it up.
      if (last_restore_ != nullptr) last_restore_->stop = true;
      last_restore_ = Begin(restore->number);
      longs_.emplace_back(last_restore_);
      restores_.push_back({std::move(*restore), last_restore_});
    } else if (auto* drop = std::get_if<master::DropCheckpoint>(&command)) {
      folder_work_.emplace_back(std::move(*drop));
    } else if (auto* collect = std::get_if<master::CollectOrphans>(&command)) {
      folder_work_.emplace_back(std::move(*collect));
    }
  }
  changed_.NotifyAll();
}

void PsController::OnRound(bool progressed) {
  const MutexLock lock(mutex_);
  for (const std::weak_ptr<Long>& weak : longs_) {
    const LongPtr run = weak.lock();
    if (run == nullptr) continue;
    if (progressed) {
      run->progress_at = clock_.Now();
    } else if (clock_.Now() - run->progress_at.load() > options_.no_progress) {
      run->stands_still = true;
      run->stop = true;
    }
  }
}

void PsController::RestoreAllAsked() {
  while (true) {
    std::optional<RestoreAsked> asked;
    {
      const MutexLock lock(mutex_);
      while (restores_.empty() && !stop_) changed_.Wait(mutex_);
      if (stop_) return;
      asked = std::move(restores_.front());
      restores_.pop_front();
    }
    asked->run->progress_at = clock_.Now();
    answers_.restored(asked->restore.number, Restore(asked->restore, *asked->run));
  }
}

void PsController::SaveAllAsked() {
  while (true) {
    std::optional<SaveAsked> asked;
    {
      const MutexLock lock(mutex_);
      while (saves_.empty() && !stop_) changed_.Wait(mutex_);
      if (stop_) return;
      asked = std::move(saves_.front());
      saves_.pop_front();
    }
    asked->run->progress_at = clock_.Now();
    answers_.saved(asked->save.number, Save(asked->save, *asked->run));
  }
}

void PsController::DoFolderWork() {
  while (true) {
    std::optional<FolderWork> work;
    {
      const MutexLock lock(mutex_);
      while (folder_work_.empty() && !stop_) changed_.Wait(mutex_);
      if (stop_) return;
      work = std::move(folder_work_.front());
      folder_work_.pop_front();
    }
    if (const auto* drop = std::get_if<master::DropCheckpoint>(&*work)) {
      std::error_code error;
      fs::remove_all(options_.folder / drop->name, error);
      if (error) LOG_WARNING("removing checkpoint {}: {}", drop->name, error.message());
    } else if (const auto* collect = std::get_if<master::CollectOrphans>(&*work)) {
      const std::vector<std::string> removed = checkpoint::RemoveOrphans(
          options_.folder, collect->ledger, collect->keep, collect->below);
      if (!removed.empty()) {
        LOG_INFO("removed what is left of saves that were not finished: {}",
                 fmt::join(removed, ", "));
      }
    }
  }
}

Result<ps_client::LinkOptions> PsController::LinkTo(int index) const {
  EDL_ASSIGN_OR_RETURN(const std::string address, address_of_(index));
  EDL_ASSIGN_OR_RETURN(ps_client::LinkOptions to, ToLink(address));
  to.token = options_.token;
  return to;
}

Result<wire::Welcome> PsController::Probe(int index) const {
  EDL_ASSIGN_OR_RETURN(const ps_client::LinkOptions to, LinkTo(index));
  EDL_ASSIGN_OR_RETURN(const wire::Welcome welcome, ps_client::AskWho(to, kShort, clock_));
  if (welcome.index != static_cast<uint32_t>(index) ||
      welcome.servers != static_cast<uint32_t>(options_.servers)) {
    return Unavailable("{}:{} is server {} of {}, and not {} of {}", to.host, to.port,
                       welcome.index, welcome.servers, index, options_.servers);
  }
  return welcome;
}

Result<std::vector<LaneAnswer>> PsController::AskLong(wire::MessageType type,
                                                      const std::vector<Question>& questions,
                                                      Long& run) const {
  Result<std::vector<LaneAnswer>> answers =
      ps_client::Ask(type, questions, {.stop = &run.stop}, clock_);
  if (answers.status().code() == Code::kCancelled && run.stands_still) {
    return DeadlineExceeded(
        "no parameter server has saved or restored anything for {} s",
        std::chrono::duration_cast<std::chrono::seconds>(options_.no_progress).count());
  }
  return answers;
}

// NotFound: it is not there, though the folder that it belongs in is.
Result<checkpoint::Manifest> PsController::ReadCheckpoint(const fs::path& folder) const {
  Result<checkpoint::Manifest> manifest = checkpoint::ReadManifest(folder);
  if (manifest.status().code() != Code::kNotFound) return manifest;
  const fs::path parent = fs::absolute(folder).parent_path();
  std::error_code error;
  if (fs::exists(parent, error)) return manifest;
  return Unavailable("{} is not there: is its volume mounted?", parent.string());
}

Status PsController::Restore(const master::RestoreServers& restore, Long& run) const {
  wire::Restore message{.ps_epoch = restore.ps_epoch, .with_marks = !restore.of_another_job};
  const fs::path folder =
      restore.of_another_job ? fs::path(restore.checkpoint) : options_.folder / restore.checkpoint;
  checkpoint::Manifest manifest;
  if (!restore.checkpoint.empty()) {
    EDL_ASSIGN_OR_RETURN(manifest, ReadCheckpoint(folder));
  }
  std::vector<Question> questions;
  for (const master::RestoreServers::Server& server : restore.servers) {
    EDL_ASSIGN_OR_RETURN(const ps_client::LinkOptions to, LinkTo(server.index));
    EDL_ASSIGN_OR_RETURN(const wire::Welcome welcome, Probe(server.index));
    message.incarnation = server.incarnation;
    for (const ps_client::LinkOptions& lane : ps_client::LanesOf(to, welcome)) {
      const wire::Placement placement(lane.lanes);
      message.paths =
          manifest.PathsFor(folder, placement.FirstOf(lane.place), placement.EndOf(lane.place));
      questions.push_back({.to = lane, .meta = wire::Encode(message)});
    }
  }
  Status restored = AskLong(wire::MessageType::kRestore, questions, run).status();
  if (restored.code() == Code::kNotFound) {
    return Unavailable("{}; the master sees the file: is the volume mounted there?",
                       restored.message());
  }
  return restored;
}

Status PsController::Save(const master::SaveAll& save, Long& run) const {
  const fs::path folder = options_.folder / save.name;
  EDL_RETURN_IF_ERROR(checkpoint::MakeCheckpointFolder(folder));
  checkpoint::Manifest manifest{
      .ps_epoch = save.ps_epoch, .version = save.version, .covered = save.covered};
  std::vector<Question> questions;
  std::vector<uint64_t> lives;
  for (int index = 0; index < options_.servers; ++index) {
    EDL_ASSIGN_OR_RETURN(const ps_client::LinkOptions to, LinkTo(index));
    EDL_ASSIGN_OR_RETURN(const wire::Welcome welcome, Probe(index));
    const uint64_t life = save.incarnations[static_cast<size_t>(index)];
    if (welcome.incarnation != life) return Aborted("parameter server {} was started anew", index);
    const wire::Placement placement(size_t{welcome.lanes} * welcome.servers);
    for (const ps_client::LinkOptions& lane : ps_client::LanesOf(to, welcome)) {
      manifest.parts.push_back(
          {.file = fmt::format("part-{:04}-of-{:04}-{:016x}", lane.place, lane.lanes, life),
           .first_bucket = placement.FirstOf(lane.place),
           .end_bucket = placement.EndOf(lane.place)});
      lives.push_back(life);
      questions.push_back({.to = lane,
                           .meta = wire::Encode(wire::Save{.path = fs::absolute(folder) /
                                                                   manifest.parts.back().file})});
    }
  }
  if (save.flush) {
    std::vector<Question> flush = questions;
    for (Question& question : flush) question.meta.clear();
    EDL_RETURN_IF_ERROR(ps_client::Ask(wire::MessageType::kFlush, flush, kShort, clock_).status());
  }
  EDL_ASSIGN_OR_RETURN(const std::vector<LaneAnswer> answers,
                       AskLong(wire::MessageType::kSave, questions, run));
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].incarnation != lives[i]) {
      return Aborted("a parameter server was started anew meanwhile");
    }
    wire::SaveAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(AsBytes(answers[i].meta), answer));
    manifest.parts[i].bytes = answer.bytes;
  }
  return checkpoint::WriteManifest(folder, manifest);
}

}  // namespace edl::ps_control
