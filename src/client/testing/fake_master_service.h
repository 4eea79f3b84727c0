#pragma once

#include <memory>
#include <string>
#include <vector>

#include "job/job_view.h"

namespace edl::client {

// The calls of users to a master, served on a free loopback port. Checks the token, returns the
// view, the ledger and the curves that were set, and records the calls of Scale and Stop.
// Thread-safe.
class FakeMasterService {
 public:
  explicit FakeMasterService(std::string token);
  ~FakeMasterService();

  const std::string& address() const;

  void SetView(const job::JobView& view);
  void SetLedger(std::string json);
  void SetCurves(std::string json);
  std::vector<std::string> asked_series() const;  // by the last call of GetTelemetry
  int scaled_to() const;                          // -1: Scale was not called
  std::string stop_reason() const;                // empty: Stop was not called

 private:
  class Service;
  struct Running;
  const std::unique_ptr<Running> running_;
};

}  // namespace edl::client
