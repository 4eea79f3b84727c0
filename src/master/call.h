#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "base/status.h"
#include "master/loop.h"
#include "rpc/status.h"

namespace edl::master {

// One unary call on the loop. It holds no thread while it waits for its answer.
//
// Confined: call it on the loop.
class Call {
 public:
  const grpc::ServerContext& context() const { return context_; }
  // Unique among the calls of this process.
  uint64_t id() const { return id_; }

  // Ends the call. REQUIRES: once.
  virtual void Answer(const Status& status) = 0;

  // Called if the caller hangs up before it is answered; it still has to be answered.
  void set_on_hang_up(std::function<void(Core&)> on_hang_up) {
    on_hang_up_ = std::move(on_hang_up);
  }
  // Called at the very end if the caller hung up: it may not have got its answer.
  void set_on_lost(std::function<void(Core&)> on_lost) { on_lost_ = std::move(on_lost); }

 protected:
  ~Call() = default;

  static uint64_t NextId() {
    static std::atomic<uint64_t> last = 0;  // over all loops of a process
    return ++last;
  }

  grpc::ServerContext context_;
  std::function<void(Core&)> on_hang_up_;
  std::function<void(Core&)> on_lost_;

 private:
  const uint64_t id_ = NextId();
};

// Answers once what was decided is durable.
inline void AnswerLater(Core& core, Call& call, const Status& status = Ok()) {
  core.outbox().Add([&call, status] { call.Answer(status); });
}

// What a service does with a call; `in` and `out` live until it is answered.
template <typename Request, typename Response>
using Handler = void (*)(Core& core, Call& call, const Request& in, Response* out);

// How a generated service is asked for the next call of a method.
template <typename Service, typename Request, typename Response>
using AskFor = void (Service::*)(grpc::ServerContext*, Request*,
                                 grpc::ServerAsyncResponseWriter<Response>*, grpc::CompletionQueue*,
                                 grpc::ServerCompletionQueue*, void*);

// Whether a caller may call at all.
using Admit = std::function<Status(const Core&, const grpc::ServerContext&)>;

template <typename Service, typename Request, typename Response>
struct Method {
  Service& service;
  AskFor<Service, Request, Response> ask;
  Handler<Request, Response> handler;
  const Admit& admit;
  grpc::ServerCompletionQueue& queue;
};

// Deletes itself when gRPC is through with it.
template <typename Service, typename Request, typename Response>
class UnaryCall final : public Call, private Loop::Event {
 public:
  using MethodType = Method<Service, Request, Response>;

  // Waits for a call of a method that outlives it.
  static void Await(const MethodType& method) { new UnaryCall(method); }

  void Answer(const Status& status) override {
    state_ = State::kAnswered;
    writer_.Finish(out_, rpc::ToGrpc(status), Tag());
  }

 private:
  enum class State { kAwaited, kServed, kAnswered, kSent };

  // gRPC's word that the call is over, whoever ended it.
  class Over final : public Loop::Event {
   public:
    explicit Over(UnaryCall& call) : call_(call) {}
    void On(Core& core, bool) override { call_.OnOver(core); }
    void* Tag() { return static_cast<Loop::Event*>(this); }

   private:
    UnaryCall& call_;
  };

  explicit UnaryCall(const MethodType& method)
      : method_(method), writer_(&context_), over_event_(*this) {
    context_.AsyncNotifyWhenDone(over_event_.Tag());
    (method_.service.*method_.ask)(&context_, &in_, &writer_, &method_.queue, &method_.queue,
                                   Tag());
  }
  ~UnaryCall() = default;

  void* Tag() { return static_cast<Loop::Event*>(this); }

  void On(Core& core, bool ok) override {
    if (state_ == State::kAnswered) {
      state_ = State::kSent;
      if (over_) End(core);
      return;
    }
    if (!ok) {  // the server shuts down
      delete this;
      return;
    }
    Await(method_);
    state_ = State::kServed;
    if (const Status status = method_.admit(core, context_); !status.ok()) {
      Answer(status);
    } else {
      method_.handler(core, *this, in_, &out_);
    }
  }

  void OnOver(Core& core) {
    over_ = true;
    if (state_ == State::kSent) {
      End(core);
    } else if (state_ == State::kServed && on_hang_up_) {
      const auto on_hang_up = std::move(on_hang_up_);
      on_hang_up(core);
    }
  }

  void End(Core& core) {
    if (on_lost_ && context_.IsCancelled()) on_lost_(core);
    delete this;
  }

  const MethodType& method_;
  Request in_;
  Response out_;
  grpc::ServerAsyncResponseWriter<Response> writer_;
  Over over_event_;
  State state_ = State::kAwaited;
  bool over_ = false;
};

// The methods of a service, taken off a queue.
class Methods {
 public:
  // Before the methods go, the queue has been shut down and drained.
  Methods(grpc::ServerCompletionQueue& queue, Admit admit)
      : queue_(queue), admit_(std::move(admit)) {}

  // `ahead`: how many calls are waited for at once.
  template <typename Service, typename Request, typename Response>
  void Serve(std::type_identity_t<Service>& service, AskFor<Service, Request, Response> ask,
             Handler<Request, Response> handler, int ahead = 1) {
    using MethodType = Method<Service, Request, Response>;
    auto method = std::make_shared<MethodType>(MethodType{service, ask, handler, admit_, queue_});
    for (int i = 0; i < ahead; ++i) UnaryCall<Service, Request, Response>::Await(*method);
    methods_.push_back(std::move(method));
  }

 private:
  grpc::ServerCompletionQueue& queue_;
  const Admit admit_;
  std::vector<std::shared_ptr<const void>> methods_;  // of as many types
};

// A service of the master's server.
class Service {
 public:
  virtual ~Service() = default;
  virtual grpc::Service& Registered() = 0;
  // Takes calls off `queue` from now on. REQUIRES: the server runs.
  virtual void Listen(grpc::ServerCompletionQueue& queue) = 0;
};

}  // namespace edl::master
