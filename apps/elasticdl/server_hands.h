#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ps_client/ask.h"

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "job/job_view.h"
#include "master/parameter_keeper.h"

namespace edl::apps {

// Carries what the master asks of its parameter servers to them, and back what they say: who they
// are, how they are, and what became of a restore or a save. On threads of its own: one for what
// is short, one for saves, which may take minutes, and one that looks after every server.
//
// Thread-safe.
class ServerHands {
 public:
  struct Answers {
    std::function<void(uint64_t number, Result<uint64_t> incarnation)> greeted;
    std::function<void(uint64_t number, Status)> restored;
    std::function<void(uint64_t number, Status)> saved;
    std::function<void(const job::ServerView&)> state;
  };
  // The address, as host:port, of a server's slot.
  using AddressOf = std::function<Result<std::string>(int index)>;

  // `clock` outlives it. `folder` is where checkpoints are, for the servers too.
  ServerHands(int servers, std::string token, std::filesystem::path folder, AddressOf address_of,
              Answers answers, const Clock& clock);
  ~ServerHands();

  void Do(std::vector<master::ServerCommand> commands);

 private:
  // What is known of a server by its last answer.
  struct Known {
    uint64_t incarnation = 0;
    uint64_t serve_told = 0;  // the number of the Serve that it has
    uint64_t rows_pulled = 0;
    uint64_t rows_pushed = 0;
    Time at;
  };
  using Ask = std::variant<master::GreetServer, master::RestoreServers, master::DropCheckpoint>;

  void Carry();
  void SaveAllAsked();
  void LookAfterAll();
  void LookAfter(int index, const std::optional<master::ServeAll>& serve, uint64_t number);
  Result<ps_client::LinkOptions> LinkTo(int index) const;
  Result<wire::Welcome> Greet(int index) const;
  Status Restore(const master::RestoreServers& restore) const;
  Status Save(const master::SaveAll& save) const;
  void Drop(const std::string& name) const;

  const int servers_;
  const std::string token_;
  const std::filesystem::path folder_;
  const AddressOf address_of_;
  const Answers answers_;
  const Clock& clock_;
  std::atomic<bool> stop_ = false;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Ask> asked_ GUARDED_BY(mutex_);
  std::deque<master::SaveAll> saves_ GUARDED_BY(mutex_);
  std::optional<master::ServeAll> serve_ GUARDED_BY(mutex_);  // the newest
  uint64_t serve_number_ GUARDED_BY(mutex_) = 0;

  std::map<int, Known> known_;  // confined to the thread that looks after them
  std::vector<std::thread> threads_;
};

}  // namespace edl::apps
