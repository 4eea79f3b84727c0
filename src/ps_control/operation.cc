#include "ps_control/operation.h"

#include <algorithm>

#include "ps_control/server_watch.h"
#include "wire/messages.h"
#include "wire/placement.h"

namespace edl::ps_control {
namespace {

namespace fs = std::filesystem;
using ps_client::LaneAnswer;

constexpr Duration kShortTimeout = std::chrono::seconds(5);

}  // namespace

// --- Operation ---

void Operation::Start(Done done) {
  done_ = std::move(done);
  progress_at_ = context_.clock.Now();
  if (cancelled_) {
    Finish(Cancelled("the save or restore was cancelled before it started"));
  } else {
    Run();
  }
}

void Operation::Cancel() {
  cancelled_ = true;
  if (done_ != nullptr) channel_.Reset();
}

void Operation::OnRound(bool progressed) {
  if (done_ == nullptr) return;
  if (progressed) {
    progress_at_ = context_.clock.Now();
  } else if (!cancelled_ && context_.clock.Now() - progress_at_ > context_.no_progress) {
    stands_still_ = true;
    Cancel();
  }
}

void Operation::Finish(const Status& status) {
  // The callee may destroy the operation.
  const Done done = std::exchange(done_, nullptr);
  if (stands_still_ && status.code() == Code::kCancelled) {
    done(DeadlineExceeded(
        "no parameter server has saved or restored anything for {} s",
        std::chrono::duration_cast<std::chrono::seconds>(context_.no_progress).count()));
  } else {
    done(status);
  }
}

void Operation::HelloAll(std::vector<int> servers, OnWelcomes done) {
  HelloNext(std::move(servers), {}, std::move(done));
}

void Operation::HelloNext(std::vector<int> servers, std::vector<wire::Welcome> welcomes,
                          OnWelcomes done) {
  if (cancelled_) return Finish(Cancelled("the master cancelled the save or restore"));
  if (welcomes.size() == servers.size()) return done(welcomes);
  const int server = servers[welcomes.size()];
  channel_.Hello(server, kShortTimeout,
                 [this, server, servers = std::move(servers), welcomes = std::move(welcomes),
                  done = std::move(done)](const Result<wire::Welcome>& welcome) mutable {
                   const Status identified = welcome.ok()
                                                 ? CheckIdentity(*welcome, server, context_.servers)
                                                 : welcome.status();
                   if (!identified.ok()) return Finish(identified);
                   welcomes.push_back(*welcome);
                   HelloNext(std::move(servers), std::move(welcomes), std::move(done));
                 });
}

void Operation::Ask(wire::MessageType type, std::vector<ServerMessage> messages,
                    std::optional<Duration> timeout, OnAnswers done,
                    std::function<Status(const Status&)> explain) {
  if (cancelled_) return Finish(Cancelled("the master cancelled the save or restore"));
  channel_.Ask(type, std::move(messages), timeout,
               [this, done = std::move(done),
                explain = std::move(explain)](const Result<std::vector<LaneAnswer>>& answers) {
                 if (answers.ok()) {
                   done(*answers);
                 } else {
                   Finish(explain != nullptr ? explain(answers.status()) : answers.status());
                 }
               });
}

// --- SaveOperation ---

void SaveOperation::Run() {
  context().store.MakeFolder(checkpoint_.folder(), [this](const Status& made) {
    if (!made.ok()) return Finish(made);
    std::vector<int> servers;
    for (int index = 0; index < context().servers; ++index) servers.push_back(index);
    HelloAll(std::move(servers),
             [this](const std::vector<wire::Welcome>& welcomes) { AddParts(welcomes); });
  });
}

void SaveOperation::AddParts(const std::vector<wire::Welcome>& welcomes) {
  for (size_t index = 0; index < welcomes.size(); ++index) {
    const wire::Welcome& welcome = welcomes[index];
    if (welcome.incarnation != save_.incarnations.at(index)) {
      return Finish(Aborted("parameter server {} was restarted before the save", index));
    }
    const size_t lanes = size_t{welcome.lanes} * welcome.servers;
    ServerMessage message{.server = static_cast<int>(index), .welcome = welcome, .metas = {}};
    for (size_t lane = 0; lane < welcome.lanes; ++lane) {
      message.metas.push_back(
          checkpoint_.AddPart(job::LaneInJob(static_cast<uint32_t>(index * welcome.lanes + lane)),
                              lanes, welcome.incarnation));
      incarnations_.push_back(welcome.incarnation);
    }
    messages_.push_back(std::move(message));
  }
  if (save_.flush) {
    Flush();
  } else {
    Save();
  }
}

void SaveOperation::Flush() {
  std::vector<ServerMessage> messages = messages_;
  for (ServerMessage& message : messages) message.metas.assign(message.metas.size(), {});
  Ask(wire::MessageType::kFlush, std::move(messages), kShortTimeout,
      [this](const std::vector<LaneAnswer>&) { Save(); });
}

void SaveOperation::Save() {
  Ask(wire::MessageType::kSave, messages_, std::nullopt,
      [this](const std::vector<LaneAnswer>& answers) { OnSaved(answers); });
}

void SaveOperation::OnSaved(const std::vector<LaneAnswer>& answers) {
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].incarnation != incarnations_.at(i)) {
      return Finish(Aborted("a parameter server was restarted during the save"));
    }
    const Status added = checkpoint_.AddAnswer(i, answers[i].meta);
    if (!added.ok()) return Finish(added);
  }
  context().store.WriteManifest(checkpoint_.folder(), checkpoint_.manifest(),
                                [this](const Status& written) { Finish(written); });
}

// --- RestoreOperation ---

void RestoreOperation::Run() {
  if (restore_.checkpoint.empty()) return Hello({}, {});
  const fs::path folder = restore_.of_another_job ? fs::path(restore_.checkpoint)
                                                  : context().folder / restore_.checkpoint;
  context().store.ReadManifest(folder,
                               [this, folder](const Result<checkpoint::Manifest>& manifest) {
                                 if (!manifest.ok()) return Finish(manifest.status());
                                 Hello(folder, *manifest);
                               });
}

void RestoreOperation::Hello(const fs::path& folder, const checkpoint::Manifest& manifest) {
  std::vector<int> servers;
  for (const master::RestoreServers::Server& server : restore_.servers) {
    servers.push_back(server.index);
  }
  HelloAll(std::move(servers), [this, folder,
                                manifest](const std::vector<wire::Welcome>& welcomes) {
    std::vector<ServerMessage> messages;
    for (size_t i = 0; i < welcomes.size(); ++i) {
      const wire::Welcome& welcome = welcomes[i];
      const wire::Placement placement(size_t{welcome.lanes} * welcome.servers);
      ServerMessage message{.server = restore_.servers[i].index, .welcome = welcome, .metas = {}};
      for (size_t lane = 0; lane < welcome.lanes; ++lane) {
        const job::LaneInJob place(
            static_cast<uint32_t>(size_t{welcome.index} * welcome.lanes + lane));
        message.metas.push_back(wire::Encode(wire::Restore{
            .incarnation = restore_.servers[i].incarnation,
            .ps_epoch = restore_.ps_epoch,
            .with_watermarks = !restore_.of_another_job,
            .paths = manifest.PathsFor(folder, placement.FirstOf(place), placement.EndOf(place))}));
      }
      messages.push_back(std::move(message));
    }
    Ask(
        wire::MessageType::kRestore, std::move(messages), std::nullopt,
        [this](const std::vector<LaneAnswer>&) { Finish(Ok()); },
        [](const Status& failed) {
          // The master has just read the manifest, so the file is missing for that server alone.
          return failed.code() == Code::kNotFound
                     ? Unavailable(
                           "{}; the master sees this file: mount the volume of the checkpoints for "
                           "that parameter server too",
                           failed.message())
                     : failed;
        });
  });
}

// --- OperationQueue ---

void OperationQueue::Add(std::unique_ptr<Operation> operation) {
  operations_.push_back(std::move(operation));
  if (operations_.size() == 1) StartFirst();
}

void OperationQueue::StartFirst() {
  operations_.front()->Start([this](const Status& status) {
    const std::unique_ptr<Operation> finished = std::move(operations_.front());
    operations_.pop_front();
    answer_(finished->number(), status);
    if (!operations_.empty()) StartFirst();
  });
}

void OperationQueue::Cancel(master::PsCommandId number) {
  for (const auto& operation : operations_) {
    if (operation->number() == number) operation->Cancel();
  }
}

void OperationQueue::CancelAll() {
  for (const auto& operation : operations_) operation->Cancel();
}

void OperationQueue::OnRound(bool progressed) {
  for (const auto& operation : operations_) operation->OnRound(progressed);
}

}  // namespace edl::ps_control
