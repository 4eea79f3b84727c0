#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/status.h"

namespace edl::master {

template <typename T>
using Reply = std::function<void(Result<T>)>;

// The answer of a call that returns nothing.
struct Done {};

// Answers that are decided and not sent yet. An answer is sent, in order, only after the commit of
// the changes that it depends on.
//
// Confined: call it on the master's loop.
class Outbox {
 public:
  // Calls `send` after the next commit.
  void Add(std::function<void()> send) { undurable_.push_back(std::move(send)); }

  template <typename T>
  void Send(const Reply<T>& reply, Result<T> answer) {
    Add([reply, answer = std::move(answer)]() mutable { reply(std::move(answer)); });
  }

  // Drops all answers, as a crash would.
  void Clear() {
    undurable_.clear();
    durable_.clear();
  }
  // Call it after each commit: everything that was added before may be sent.
  void OnCommitted() {
    for (auto& send : undurable_) durable_.push_back(std::move(send));
    undurable_.clear();
  }
  // Sends at most so many committed answers, because each costs a system call.
  void Release(size_t at_most) {
    for (; at_most > 0 && !durable_.empty(); --at_most) {
      const std::function<void()> send = std::move(durable_.front());
      durable_.pop_front();
      send();
    }
  }
  // How many answers may be sent and were not.
  size_t releasable() const { return durable_.size(); }

 private:
  std::vector<std::function<void()>> undurable_;
  std::deque<std::function<void()>> durable_;
};

}  // namespace edl::master
