#include "apps/elasticdl/server_hands.h"

#include <span>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "job/manifest.h"
#include "wire/messages.h"

namespace edl::apps {
namespace {

namespace fs = std::filesystem;
using ps_client::LaneAnswer;
using ps_client::Question;

constexpr ps_client::AskOptions kShort{.patience = std::chrono::seconds(5)};
// For a restore or a save: a machine that is gone may not even refuse.
constexpr std::chrono::minutes kLongest{10};
constexpr std::chrono::milliseconds kLookEvery{500};

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

Result<ps_client::LinkOptions> ToLink(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return InvalidArgument("{} is no host:port", address);
  ps_client::LinkOptions to;
  to.host = address.substr(0, colon);
  to.port = static_cast<uint16_t>(std::atoi(address.c_str() + colon + 1));
  to.caller = "the master";
  return to;
}

// Lives that are meant and those that answered must be the same.
Status CheckLives(const std::vector<LaneAnswer>& answers, uint64_t incarnation) {
  for (const LaneAnswer& answer : answers) {
    if (answer.incarnation != incarnation) {
      return Aborted("a parameter server was started anew meanwhile");
    }
  }
  return Ok();
}

}  // namespace

ServerHands::ServerHands(int servers, std::string token, fs::path folder, AddressOf address_of,
                         Answers answers, const Clock& clock)
    : servers_(servers),
      token_(std::move(token)),
      folder_(std::move(folder)),
      address_of_(std::move(address_of)),
      answers_(std::move(answers)),
      clock_(clock) {
  threads_.emplace_back([this] { Carry(); });
  threads_.emplace_back([this] { SaveAllAsked(); });
  threads_.emplace_back([this] { LookAfterAll(); });
}

ServerHands::~ServerHands() {
  stop_ = true;
  {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ServerHands::Do(std::vector<master::ServerCommand> commands) {
  if (commands.empty()) return;
  const MutexLock lock(mutex_);
  for (master::ServerCommand& command : commands) {
    if (auto* serve = std::get_if<master::ServeAll>(&command)) {
      serve_ = std::move(*serve);
      ++serve_number_;
    } else if (auto* save = std::get_if<master::SaveAll>(&command)) {
      saves_.push_back(std::move(*save));
    } else if (auto* greet = std::get_if<master::GreetServer>(&command)) {
      asked_.emplace_back(*greet);
    } else if (auto* restore = std::get_if<master::RestoreServers>(&command)) {
      asked_.emplace_back(std::move(*restore));
    } else if (auto* drop = std::get_if<master::DropCheckpoint>(&command)) {
      asked_.emplace_back(std::move(*drop));
    }
  }
  changed_.NotifyAll();
}

void ServerHands::Carry() {
  while (true) {
    std::optional<Ask> asked;
    {
      const MutexLock lock(mutex_);
      while (asked_.empty() && !stop_) changed_.Wait(mutex_);
      if (stop_) return;
      asked = std::move(asked_.front());
      asked_.pop_front();
    }
    if (const auto* greet = std::get_if<master::GreetServer>(&*asked)) {
      const Result<wire::Welcome> welcome = Greet(greet->index);
      answers_.greeted(greet->number, welcome.ok() ? Result<uint64_t>(welcome->incarnation)
                                                   : Result<uint64_t>(welcome.status()));
    } else if (const auto* restore = std::get_if<master::RestoreServers>(&*asked)) {
      answers_.restored(restore->number, Restore(*restore));
    } else if (const auto* drop = std::get_if<master::DropCheckpoint>(&*asked)) {
      Drop(drop->name);
    }
  }
}

void ServerHands::SaveAllAsked() {
  while (true) {
    std::optional<master::SaveAll> save;
    {
      const MutexLock lock(mutex_);
      while (saves_.empty() && !stop_) changed_.Wait(mutex_);
      if (stop_) return;
      save = std::move(saves_.front());
      saves_.pop_front();
    }
    answers_.saved(save->number, Save(*save));
  }
}

Result<ps_client::LinkOptions> ServerHands::LinkTo(int index) const {
  EDL_ASSIGN_OR_RETURN(const std::string address, address_of_(index));
  EDL_ASSIGN_OR_RETURN(ps_client::LinkOptions to, ToLink(address));
  to.token = token_;
  return to;
}

Result<wire::Welcome> ServerHands::Greet(int index) const {
  EDL_ASSIGN_OR_RETURN(const ps_client::LinkOptions to, LinkTo(index));
  EDL_ASSIGN_OR_RETURN(const wire::Welcome welcome, ps_client::AskWho(to, kShort, clock_));
  if (welcome.index != static_cast<uint32_t>(index) ||
      welcome.servers != static_cast<uint32_t>(servers_)) {
    return Unavailable("{}:{} is server {} of {}, and not {} of {}", to.host, to.port,
                       welcome.index, welcome.servers, index, servers_);
  }
  return welcome;
}

Status ServerHands::Restore(const master::RestoreServers& restore) const {
  wire::Restore message{.ps_epoch = restore.ps_epoch, .with_marks = !restore.of_another_job};
  if (!restore.checkpoint.empty()) {
    const fs::path folder =
        restore.of_another_job ? fs::path(restore.checkpoint) : folder_ / restore.checkpoint;
    EDL_ASSIGN_OR_RETURN(const job::Manifest manifest, job::ReadManifest(folder));
    for (const job::Manifest::Part& part : manifest.parts) {
      message.paths.push_back(fs::absolute(folder) / part.file);
    }
  }
  std::vector<Question> questions;
  for (const master::RestoreServers::Server& server : restore.servers) {
    EDL_ASSIGN_OR_RETURN(const ps_client::LinkOptions to, LinkTo(server.index));
    EDL_ASSIGN_OR_RETURN(const wire::Welcome welcome, Greet(server.index));
    message.incarnation = server.incarnation;
    for (const ps_client::LinkOptions& lane : ps_client::LanesOf(to, welcome)) {
      questions.push_back({.to = lane, .meta = wire::Encode(message)});
    }
  }
  return ps_client::Ask(wire::MessageType::kRestore, questions,
                        {.patience = kLongest, .stop = &stop_}, clock_)
      .status();
}

Status ServerHands::Save(const master::SaveAll& save) const {
  const fs::path folder = folder_ / save.name;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return StatusFromErrno(error.value(), fmt::format("making {}", folder.string()));
  job::Manifest manifest{
      .ps_epoch = save.ps_epoch, .version = save.version, .covered = save.covered};
  std::vector<Question> questions;
  std::vector<uint64_t> lives;
  for (int index = 0; index < servers_; ++index) {
    EDL_ASSIGN_OR_RETURN(const ps_client::LinkOptions to, LinkTo(index));
    EDL_ASSIGN_OR_RETURN(const wire::Welcome welcome, Greet(index));
    const uint64_t life = save.incarnations[static_cast<size_t>(index)];
    if (welcome.incarnation != life) return Aborted("parameter server {} was started anew", index);
    for (const ps_client::LinkOptions& lane : ps_client::LanesOf(to, welcome)) {
      manifest.parts.push_back(
          {.file = fmt::format("part-{:04}-of-{:04}-{:016x}", lane.place, lane.lanes, life)});
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
                       ps_client::Ask(wire::MessageType::kSave, questions,
                                      {.patience = kLongest, .stop = &stop_}, clock_));
  for (size_t i = 0; i < answers.size(); ++i) {
    EDL_RETURN_IF_ERROR(CheckLives({answers[i]}, lives[i]));
    wire::SaveAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(Bytes(answers[i].meta), answer));
    manifest.parts[i].bytes = answer.bytes;
  }
  return job::WriteManifest(folder, manifest);
}

void ServerHands::Drop(const std::string& name) const {
  std::error_code error;
  fs::remove_all(folder_ / name, error);
  if (error) LOG_WARNING("removing checkpoint {}: {}", name, error.message());
}

void ServerHands::LookAfterAll() {
  while (true) {
    std::optional<master::ServeAll> serve;
    uint64_t number = 0;
    {
      const MutexLock lock(mutex_);
      serve = serve_;
      number = serve_number_;
    }
    for (int index = 0; index < servers_ && !stop_; ++index) LookAfter(index, serve, number);
    const auto next = std::chrono::steady_clock::now() + kLookEvery;
    const MutexLock lock(mutex_);
    while (!stop_ && serve_number_ == number && changed_.WaitUntil(mutex_, next)) {
    }
    if (stop_) return;
  }
}

// Tells the server what it may do, if it does not know yet, and hears how it is.
void ServerHands::LookAfter(int index, const std::optional<master::ServeAll>& serve,
                            uint64_t number) {
  if (!serve.has_value()) return;
  const Result<ps_client::LinkOptions> to = LinkTo(index);
  if (!to.ok()) return;
  const Result<wire::Welcome> welcome = Greet(index);
  const uint64_t life = serve->incarnations[static_cast<size_t>(index)];
  if (!welcome.ok()) return;
  if (welcome->incarnation != life) {
    // Another life is the master's business first.
    answers_.state({.index = index, .incarnation = welcome->incarnation});
    return;
  }
  Known& known = known_[index];
  if (known.incarnation != life) known = {.incarnation = life, .at = clock_.Now()};
  std::vector<Question> questions;
  for (const ps_client::LinkOptions& lane : ps_client::LanesOf(*to, *welcome)) {
    questions.push_back({.to = lane});
  }
  if (known.serve_told != number) {
    const std::string meta =
        wire::Encode(wire::Serve{.incarnation = life,
                                 .ps_epoch = serve->ps_epoch,
                                 .may_push = serve->may_push,
                                 .floor = serve->floor,
                                 .covered = serve->covered.ToJson(),
                                 .released = serve->released.at(static_cast<size_t>(index))});
    for (Question& question : questions) question.meta = meta;
    const auto told = ps_client::Ask(wire::MessageType::kServe, questions, kShort, clock_);
    if (!told.ok()) return;
    known.serve_told = number;
    for (Question& question : questions) question.meta.clear();
  }
  const auto answers = ps_client::Ask(wire::MessageType::kState, questions, kShort, clock_);
  if (!answers.ok()) return;
  job::ServerView view{.index = index, .incarnation = life};
  uint64_t pulled = 0;
  uint64_t pushed = 0;
  for (const LaneAnswer& lane : *answers) {
    wire::StateAnswer state;
    if (!wire::Decode(Bytes(lane.meta), state).ok()) return;
    view.ps_epoch = state.ps_epoch;
    view.rows += static_cast<int64_t>(state.rows);
    view.bytes += static_cast<int64_t>(state.bytes);
    view.evicted += static_cast<int64_t>(state.evicted);
    view.opens_waiting += static_cast<int64_t>(state.opens_waiting);
    view.leaving = view.leaving || state.leaving;
    pulled += state.rows_pulled;
    pushed += state.rows_pushed;
  }
  const double seconds = std::chrono::duration<double>(clock_.Now() - known.at).count();
  if (seconds > 0) {
    view.rows_pulled_per_s = static_cast<double>(pulled - known.rows_pulled) / seconds;
    view.rows_pushed_per_s = static_cast<double>(pushed - known.rows_pushed) / seconds;
  }
  known.rows_pulled = pulled;
  known.rows_pushed = pushed;
  known.at = clock_.Now();
  answers_.state(view);
}

}  // namespace edl::apps
