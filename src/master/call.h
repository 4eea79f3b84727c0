#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "base/status.h"
#include "master/loop.h"
#include "rpc/status.h"

namespace edl::master {

// One unary call of the callback API, answered from the loop. It holds no thread while it waits.
// Deletes itself when gRPC is through with it.
class Call final : public grpc::ServerUnaryReactor {
 public:
  Call() = default;

  // Called on a gRPC thread when the caller hung up before the answer was with it.
  void set_on_cancel(std::function<void()> on_cancel) { on_cancel_ = std::move(on_cancel); }
  // Called last. `cancelled`: the caller hung up, perhaps with the answer on its way.
  void set_on_done(std::function<void(bool cancelled)> on_done) { on_done_ = std::move(on_done); }

  void Answer(const Status& status) { Finish(rpc::ToGrpc(status)); }

  void OnCancel() override {
    cancelled_ = true;
    if (on_cancel_) on_cancel_();
  }
  void OnDone() override {
    if (on_done_) on_done_(cancelled_);
    delete this;
  }

 private:
  std::function<void()> on_cancel_;
  std::function<void(bool)> on_done_;
  std::atomic<bool> cancelled_{false};
};

// A call that is answered at once, with nothing but its status.
inline grpc::ServerUnaryReactor* AnswerNow(const Status& status) {
  auto* call = new Call();
  call->Answer(status);
  return call;
}

// Runs `work(core, answer)` on the loop; `answer(status)` ends the call, then or later.
template <typename Work>
grpc::ServerUnaryReactor* OnLoop(Loop& loop, Work work) {
  auto* call = new Call();
  loop.Post([call, work = std::move(work)](Core& core) {
    work(core, [call](const Status& status) { call->Answer(status); });
  });
  return call;
}

using AnswerCall = std::function<void(const Status&)>;

}  // namespace edl::master
