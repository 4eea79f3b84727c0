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

// Decides from the metadata of a call whether its caller is allowed. An error is the answer.
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
//
// Immutable once the server has started.
class Methods {
 public:
  struct Method {
    Admit admit;
    std::function<std::unique_ptr<CallMessages>()> new_messages;
  };

  // Adds methods of one service. All have the same rule of admission.
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
    // The same for a plain function, so that the caller need not name the message types.
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
// The caller is admitted by its metadata before any byte of its request is read, so a caller
// without the token cannot make the master buffer a message. gRPC would read the request of a
// registered method first, and would use memory in each connection.
//
// Confined: call it on the master's loop.
class Call final : private Loop::Event {
 public:
  // Where calls come from. All outlive the calls.
  struct Source {
    grpc::AsyncGenericService& service;
    grpc::ServerCompletionQueue& queue;
    const Methods& methods;
  };

  // Waits for the next call of the server.
  static void Await(const Source& source) { new Call(source); }

  const grpc::ServerContext& context() const { return context_; }
  // Unique among the calls of this process.
  uint64_t id() const { return id_; }

  // Ends the call with the handler's response, or with an error. REQUIRES: once, and no write is
  // under way.
  void Answer(const Status& status);

  // Writes one message of a server stream, then calls `on_written`, unless the client has
  // disconnected. REQUIRES: no write is under way.
  void Write(const google::protobuf::Message& message);
  void set_on_written(std::function<void()> on_written) { on_written_ = std::move(on_written); }
  bool writing() const { return writing_; }

  // Ends a server stream whose client has disconnected. REQUIRES: on_disconnect was called, and
  // Answer was not.
  void Drop();

  // Called if the client disconnects before it is answered. The call still has to be ended.
  void set_on_disconnect(std::function<void(Core&)> on_disconnect) {
    on_disconnect_ = std::move(on_disconnect);
  }
  // Called after the call has ended if the client disconnected: it may not have got the answer.
  void set_on_lost(std::function<void(Core&)> on_lost) { on_lost_ = std::move(on_lost); }

 private:
  enum class State { kAwaited, kReading, kServed, kAnswered, kEnded };

  // gRPC reports that the call is over, whichever side ended it.
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
  std::function<void(Core&)> on_disconnect_;
  std::function<void(Core&)> on_lost_;
  State state_ = State::kAwaited;
  bool writing_ = false;
  bool over_ = false;
};

// Ends the call after the next commit.
inline void AnswerLater(Core& core, Call& call, const Status& status = Ok()) {
  core.SendAfterCommit([&call, status] { call.Answer(status); });
}

}  // namespace edl::master
