#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "checkpoint/manifest.h"
#include "checkpoint/new_checkpoint.h"
#include "master/parameters/parameter_keeper.h"
#include "ps_client/ask.h"
#include "ps_control/checkpoint_store.h"
#include "ps_control/server_channel.h"

namespace edl::ps_control {

// What operations need. All of it outlives them.
struct OperationContext {
  int servers = 1;
  std::filesystem::path folder;  // of the job's checkpoints
  Duration no_progress = std::chrono::seconds(120);
  CheckpointStore& store;
  const Clock& clock;
};

// A save or a restore, from the command of the master to the answer to it. It may take as long as
// it makes progress.
//
// Confined to the PsControllerCore that owns it.
class Operation {
 public:
  using Done = std::function<void(const Status&)>;

  Operation(master::PsCommandId number, const OperationContext& context, ServerChannel& channel)
      : number_(number), context_(context), channel_(channel) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  master::PsCommandId number() const { return number_; }
  // Calls `done` once, which may destroy the operation.
  void Start(Done done);
  // Makes the operation fail with Cancelled as soon as possible. It still succeeds if the last
  // answer of the servers is already here. May be called before Start.
  void Cancel();
  // A round of a watch is over. Cancels the operation when no server has saved or restored anything
  // for `no_progress`: it then fails with DeadlineExceeded.
  void OnRound(bool progressed);

 protected:
  using OnWelcomes = std::function<void(const std::vector<wire::Welcome>&)>;
  using OnAnswers = std::function<void(const std::vector<ps_client::LaneAnswer>&)>;

  // The first step. Each step starts the next one, or calls Finish and returns.
  virtual void Run() = 0;
  void Finish(const Status& status);
  // Sends Hello to these servers, one after the other. Finishes with the first failure.
  void HelloAll(std::vector<int> servers, OnWelcomes done);
  // Finishes with Cancelled if the operation is cancelled, or with the failure of the request.
  // `explain` may replace the failure.
  void Ask(wire::MessageType type, std::vector<ServerMessage> messages,
           std::optional<Duration> timeout, OnAnswers done,
           std::function<Status(const Status&)> explain = nullptr);

  const OperationContext& context() const { return context_; }

 private:
  void HelloNext(std::vector<int> servers, std::vector<wire::Welcome> welcomes, OnWelcomes done);

  const master::PsCommandId number_;
  const OperationContext& context_;
  ServerChannel& channel_;
  Done done_;  // null: not started, or finished
  bool cancelled_ = false;
  bool stands_still_ = false;
  Time progress_at_;
};

// Saves the parameters of all servers. Steps: makes the folder; checks that every server is the
// incarnation that the master means; flushes, if the master wants that; has every lane write its
// part; writes the manifest. Aborted: a server was restarted.
class SaveOperation final : public Operation {
 public:
  SaveOperation(master::SaveAll save, const OperationContext& context, ServerChannel& channel)
      : Operation(save.number, context, channel),
        save_(std::move(save)),
        checkpoint_(
            context.folder / save_.name,
            {.ps_epoch = save_.ps_epoch, .version = save_.version, .covered = save_.covered}) {}

 private:
  void Run() override;
  void AddParts(const std::vector<wire::Welcome>& welcomes);
  void Flush();
  void Save();
  void OnSaved(const std::vector<ps_client::LaneAnswer>& answers);

  const master::SaveAll save_;
  checkpoint::NewCheckpoint checkpoint_;
  std::vector<job::PsIncarnation> incarnations_;  // by part
  std::vector<ServerMessage> messages_;
};

// Restores servers from a checkpoint, or empties them. The lanes check that they are the
// incarnation that the master means. DataLoss: the checkpoint is damaged. NotFound: it is missing
// for the master too. Unavailable: among others, a server does not see a file that the master sees.
class RestoreOperation final : public Operation {
 public:
  RestoreOperation(master::RestoreServers restore, const OperationContext& context,
                   ServerChannel& channel)
      : Operation(restore.number, context, channel), restore_(std::move(restore)) {}

 private:
  void Run() override;
  void Hello(const std::filesystem::path& folder, const checkpoint::Manifest& manifest);

  const master::RestoreServers restore_;
};

// Operations of one kind, carried out one after the other in the order of Add.
//
// Confined to the PsControllerCore that owns it.
class OperationQueue {
 public:
  using Answer = std::function<void(master::PsCommandId number, const Status&)>;

  explicit OperationQueue(Answer answer) : answer_(std::move(answer)) {}

  void Add(std::unique_ptr<Operation> operation);
  // Does nothing if no such operation is queued or under way.
  void Cancel(master::PsCommandId number);
  void CancelAll();
  void OnRound(bool progressed);

 private:
  void StartFirst();

  const Answer answer_;
  std::deque<std::unique_ptr<Operation>> operations_;  // the first is under way
};

}  // namespace edl::ps_control
