#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "backend/attached_backend.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "job/job_spec.h"
#include "master/core.h"
#include "master/service/loop.h"
#include "master/service/server.h"

namespace edl::master {

// A master that serves calls on a port of this machine, without a backend, or only with one to
// which workers attach. Its loop runs on its own thread until the destructor.
class ServedMaster {
 public:
  static constexpr const char* kToken = "secret";

  // `workers` launches the workers; null: nothing is launched. It outlives this object.
  explicit ServedMaster(job::JobSpec spec, const std::string& address = "127.0.0.1:0",
                        backend::AttachedBackend* workers = nullptr);
  ~ServedMaster();

  // A new connection, as from another process.
  std::shared_ptr<grpc::Channel> Connect() const;
  int port() const;
  // Runs `work` on the loop and returns when its changes are committed. Aborts the program if that
  // takes longer than kAwaitTimeout: `work` may refer to variables of the caller.
  void OnLoop(const std::function<void(Core&)>& work);
  void Register(const DatasetSpec& spec);
  // While it is fenced, the master must not write to its ledger.
  void SetFenced(bool fenced) {
    const MutexLock lock(mutex_);
    fenced_ = fenced;
    changed_.NotifyAll();
  }
  // Waits until a view with at least so many completed batches has been shown. DeadlineExceeded: it
  // was not.
  Status AwaitShown(int64_t version);
  // Waits until exactly so many calls wait for a shard. DeadlineExceeded: they did not.
  Status AwaitWaiting(size_t calls);

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
  backend::AttachedBackend* const workers_;  // null: none
  std::thread thread_;
};

// The result of a call of "/package.Service/Method" with these bytes as its message.
grpc::Status CallWith(const std::string& request, const std::shared_ptr<grpc::Channel>& channel,
                      const std::string& method, grpc::ClientContext& context);

// A context with the token, and a deadline after which a test has failed.
std::unique_ptr<grpc::ClientContext> NewContext(
    std::chrono::milliseconds timeout = std::chrono::seconds(60),
    const std::string& token = ServedMaster::kToken);

}  // namespace edl::master
