#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "job/job_spec.h"
#include "master/core.h"
#include "master/service/loop.h"
#include "master/service/server.h"

namespace edl::master {

// A master that serves calls on a port of this machine, without a backend: its loop has a thread
// of its own until this goes.
class ServedMaster {
 public:
  static constexpr const char* kToken = "secret";

  explicit ServedMaster(job::JobSpec spec, const std::string& address = "127.0.0.1:0");
  ~ServedMaster();

  // A connection of its own, as another process would have it.
  std::shared_ptr<grpc::Channel> Connect() const;
  int port() const;
  // Runs `work` on the loop and returns when it is done and committed.
  void OnLoop(const std::function<void(Core&)>& work);
  void Register(const DatasetSpec& spec);
  // While it is fenced, the master must not write to its ledger.
  void SetFenced(bool fenced) {
    const MutexLock lock(mutex_);
    fenced_ = fenced;
    changed_.NotifyAll();
  }
  // Returns when a view of the job has been shown with so many batches done.
  void AwaitShown(int64_t version);
  // Returns when exactly so many calls wait for a shard.
  void AwaitWaiting(size_t calls);

 private:
  const job::JobSpec spec_;
  const SystemClock clock_;
  Mutex mutex_;
  CondVar changed_;
  int64_t shown_ GUARDED_BY(mutex_) = 0;
  bool fenced_ GUARDED_BY(mutex_) = false;
  Ledger ledger_;
  Core core_;
  Loop loop_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

// What a call of "/package.Service/Method" with these bytes as its message returns.
grpc::Status CallWith(const std::string& request, const std::shared_ptr<grpc::Channel>& channel,
                      const std::string& method, grpc::ClientContext& context);

// A context with the token, and a deadline after which a test has failed.
std::unique_ptr<grpc::ClientContext> NewContext(
    std::chrono::milliseconds timeout = std::chrono::seconds(60),
    const std::string& token = ServedMaster::kToken);

}  // namespace edl::master
