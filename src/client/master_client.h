#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/status.h"
#include "job/job_view.h"

namespace edl::client {

// What a user asks of a running job's master. Every call gives up after its deadline;
// Unavailable and DeadlineExceeded mean that the master cannot be reached now (it may be
// restarting), Unauthenticated and PermissionDenied that the token is not this job's.
//
// Starts threads of gRPC's: not before the process has forked what it wants to fork. Thread-safe.
class MasterClient {
 public:
  MasterClient(const std::string& address, std::string token);
  ~MasterClient();
  MasterClient(const MasterClient&) = delete;
  MasterClient& operator=(const MasterClient&) = delete;

  Result<job::JobView> GetJob(std::chrono::milliseconds deadline);
  // Everything that the ledger holds, as JSON.
  Result<std::string> GetLedger(std::chrono::milliseconds deadline);
  Status Scale(int num_workers, std::chrono::milliseconds deadline);
  // Asks the master to stop the job; returns before it has.
  Status Stop(const std::string& reason, std::chrono::milliseconds deadline);

 private:
  struct Stub;
  const std::string token_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace edl::client
