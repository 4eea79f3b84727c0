#pragma once

#include <memory>
#include <string>

#include "job/job_view.h"

namespace edl::client {

// A master's answers to users, served on a free loopback port: asks for the token, answers with
// the view and the ledger that it was given, and remembers what it was asked to do. Thread-safe.
class FakeMasterService {
 public:
  explicit FakeMasterService(std::string token);
  ~FakeMasterService();

  const std::string& address() const;

  void SetView(const job::JobView& view);
  void SetLedger(std::string json);
  int scaled_to() const;            // -1: nobody asked
  std::string stop_reason() const;  // empty: nobody asked

 private:
  class Service;
  struct Running;
  const std::unique_ptr<Running> running_;
};

}  // namespace edl::client
