#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "telemetry/curves.h"

#include "base/status.h"
#include "job/job_view.h"

namespace edl::client {

// The calls that users make to the master of a running job. Each call blocks until the answer or
// until its deadline. Unavailable and DeadlineExceeded: the master cannot be reached now, it may be
// restarting. Unauthenticated and PermissionDenied: the token is not this job's.
//
// The constructor starts threads of gRPC, so the process must not fork after it. Thread-safe.
class MasterClient {
 public:
  MasterClient(const std::string& address, std::string token);
  ~MasterClient();
  MasterClient(const MasterClient&) = delete;
  MasterClient& operator=(const MasterClient&) = delete;

  Result<job::JobView> GetJob(std::chrono::milliseconds deadline);
  // The content of the ledger as JSON.
  Result<std::string> GetLedger(std::chrono::milliseconds deadline);
  Result<telemetry::Curves> GetTelemetry(const telemetry::Query& query,
                                         std::chrono::milliseconds deadline);
  Status Scale(int num_workers, std::chrono::milliseconds deadline);
  // Requests that the master stops the job. Returns before the job has stopped.
  Status Stop(const std::string& reason, std::chrono::milliseconds deadline);

 private:
  struct Stub;
  const std::string token_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace edl::client
