#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "base/status.h"
#include "master/core.h"
#include "master/service/loop.h"

namespace edl::master {

class Call;

// Decides from the metadata of a call whether the caller may make it.
using Admit = std::function<Status(const Core&, const grpc::ServerContext&)>;

// The request and the response of one call.
class CallMessages {
 public:
  virtual ~CallMessages() = default;
  virtual google::protobuf::Message& request() = 0;
  virtual const google::protobuf::Message& response() = 0;
  virtual void Handle(Core& core, Call& call) = 0;
};

// Handles a call. `in` and `out` live until the call has ended.
template <typename Request, typename Response>
using Handler = std::function<void(Core& core, Call& call, const Request& in, Response* out)>;

// The methods that a server answers, by their paths: "/elasticdl.v1.Master/Join".
class Methods {
 public:
  struct Method {
    Admit admit;
    std::function<std::unique_ptr<CallMessages>()> new_messages;
  };

  // The methods of one service. All have the same rule of admission.
  class Service {
   public:
    // `name`: "elasticdl.v1.Master".
    Service(Methods& methods, const std::string& name, Admit admit);

    // For a server stream, the handler keeps the call and writes messages to it.
    template <typename Request, typename Response>
    void Add(const std::string& method, Handler<Request, Response> handler) {
      AddMethod(Described(method, *Request::descriptor(), *Response::descriptor()),
                [handler = std::move(handler)] {
                  return std::make_unique<Messages<Request, Response>>(handler);
                });
    }
    // The same of a function, whose types need not be named.
    template <typename Request, typename Response>
    void Add(const std::string& method, void (*handler)(Core&, Call&, const Request&, Response*)) {
      Add(method, Handler<Request, Response>(handler));
    }
    // Adds a method that is answered with an empty response.
    void AddIgnored(const std::string& method);

   private:
    // CHECKs that the method has these types in the .proto file.
    const google::protobuf::MethodDescriptor& Described(
        const std::string& method, const google::protobuf::Descriptor& request,
        const google::protobuf::Descriptor& response) const;
    void AddMethod(const google::protobuf::MethodDescriptor& method,
                   std::function<std::unique_ptr<CallMessages>()> new_messages);

    Methods& methods_;
    const google::protobuf::ServiceDescriptor& service_;
    const Admit admit_;
  };

  // nullptr: the server has no such method.
  const Method* Find(const std::string& path) const;

 private:
  template <typename Request, typename Response>
  class Messages final : public CallMessages {
   public:
    explicit Messages(const Handler<Request, Response>& handler) : handler_(handler) {}
    google::protobuf::Message& request() override { return in_; }
    const google::protobuf::Message& response() override { return out_; }
    void Handle(Core& core, Call& call) override { handler_(core, call, in_, &out_); }

   private:
    const Handler<Request, Response>& handler_;  // of the method, which outlives its calls
    Request in_;
    Response out_;
  };

  std::unordered_map<std::string, Method> methods_;
};

// One call of any method. It holds no thread while it waits for its answer, and it deletes itself
// at its end.
//
// The caller is admitted by its metadata before any byte of its request is read: somebody without
// the token cannot make the master buffer a message. A method that is registered with gRPC would be
// read first, and would take memory in each connection.
//
// Confined: call it on the loop.
class Call final : private Loop::Event {
 public:
  // Where calls come from. All outlive the calls.
  struct Source {
    grpc::AsyncGenericService& service;
    grpc::ServerCompletionQueue& queue;
    const Methods& methods;
  };

  // Waits for a call.
  static void Await(const Source& source) { new Call(source); }

  const grpc::ServerContext& context() const { return context_; }
  // Unique among the calls of this process.
  uint64_t id() const { return id_; }

  // Ends the call with the handler's response, or with an error. REQUIRES: once, and no write is
  // under way.
  void Answer(const Status& status);

  // Writes one message of a server stream. `on_written` follows, unless the caller has hung up.
  // REQUIRES: no write is under way.
  void Write(const google::protobuf::Message& message);
  void set_on_written(std::function<void()> on_written) { on_written_ = std::move(on_written); }
  bool writing() const { return writing_; }

  // Ends a server stream whose caller has hung up. REQUIRES: on_hang_up was called, and Answer was
  // not.
  void Drop();

  // Called if the caller hangs up before it is answered; the call still has to be ended.
  void set_on_hang_up(std::function<void(Core&)> on_hang_up) {
    on_hang_up_ = std::move(on_hang_up);
  }
  // Called at the very end if the caller hung up: it may not have got its answer.
  void set_on_lost(std::function<void(Core&)> on_lost) { on_lost_ = std::move(on_lost); }

 private:
  enum class State { kAwaited, kReading, kServed, kAnswered, kEnded };

  // gRPC reports that the call is over, whoever ended it.
  class Over final : public Loop::Event {
   public:
    explicit Over(Call& call) : call_(call) {}
    void On(Core& core, bool) override { call_.OnOver(core); }
    void* Tag() { return static_cast<Loop::Event*>(this); }

   private:
    Call& call_;
  };

  explicit Call(const Source& source);
  ~Call() = default;

  void* Tag() { return static_cast<Loop::Event*>(this); }
  void On(Core& core, bool ok) override;
  void OnArrived(const Core& core);
  void OnRead(Core& core, bool ok);
  void OnWritten(bool ok);
  void OnOver(Core& core);
  void Refuse(const Status& status);
  void End(Core& core);

  const uint64_t id_;
  const Source source_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  Over over_event_;
  grpc::ByteBuffer received_;
  std::unique_ptr<CallMessages> messages_;
  std::function<void()> on_written_;
  std::function<void(Core&)> on_hang_up_;
  std::function<void(Core&)> on_lost_;
  State state_ = State::kAwaited;
  bool writing_ = false;
  bool over_ = false;
};

// Answers once what was decided is durable.
inline void AnswerLater(Core& core, Call& call, const Status& status = Ok()) {
  core.SendAfterCommit([&call, status] { call.Answer(status); });
}

}  // namespace edl::master
