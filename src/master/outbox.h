#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/status.h"

namespace edl::master {

template <typename T>
using Reply = std::function<void(Result<T>)>;

// What a call without an answer of its own is answered.
struct Done {};

// Answers that are decided. They may leave once the ledger has what they rest on, in order.
//
// Confined: call it on the master's loop.
class Outbox {
 public:
  void Add(std::function<void()> send) { undurable_.push_back(std::move(send)); }

  template <typename T>
  void Send(const Reply<T>& reply, Result<T> answer) {
    Add([reply, answer = std::move(answer)]() mutable { reply(std::move(answer)); });
  }

  void Clear() {
    undurable_.clear();
    durable_.clear();
  }
  // Call it after a commit: what was added before may leave.
  void OnCommitted() {
    for (auto& send : undurable_) durable_.push_back(std::move(send));
    undurable_.clear();
  }
  // Lets at most so many leave. Sending costs a system call each.
  void Release(size_t at_most) {
    for (; at_most > 0 && !durable_.empty(); --at_most) {
      const std::function<void()> send = std::move(durable_.front());
      durable_.pop_front();
      send();
    }
  }
  // How many may leave and have not.
  size_t releasable() const { return durable_.size(); }

 private:
  std::vector<std::function<void()>> undurable_;
  std::deque<std::function<void()>> durable_;
};

}  // namespace edl::master
