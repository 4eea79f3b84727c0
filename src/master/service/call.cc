#include "master/service/call.h"

#include <atomic>

#include <google/protobuf/message.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "base/check.h"
#include "rpc/status.h"

namespace edl::master {
namespace {

uint64_t NextId() {
  static std::atomic<uint64_t> last = 0;  // shared by all loops of the process
  return ++last;
}

grpc::ByteBuffer Serialized(const google::protobuf::Message& message) {
  grpc::ByteBuffer buffer;
  bool own_buffer = false;
  grpc::SerializationTraits<google::protobuf::Message>::Serialize(message, &buffer, &own_buffer);
  return buffer;
}

const google::protobuf::ServiceDescriptor& Describe(const std::string& service) {
  const auto* described =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
  CHECK(described != nullptr, "no .proto file defines service {}", service);
  return *described;
}

std::unique_ptr<google::protobuf::Message> NewMessage(const google::protobuf::Descriptor& type) {
  auto* factory = google::protobuf::MessageFactory::generated_factory();
  return std::unique_ptr<google::protobuf::Message>(factory->GetPrototype(&type)->New());
}

// The messages of a call that has no effect.
class IgnoredMessages final : public CallMessages {
 public:
  explicit IgnoredMessages(const google::protobuf::MethodDescriptor& method)
      : request_(NewMessage(*method.input_type())), response_(NewMessage(*method.output_type())) {}
  google::protobuf::Message& request() override { return *request_; }
  const google::protobuf::Message& response() override { return *response_; }
  void Handle(Core&, Call& call) override { call.Answer(Ok()); }

 private:
  const std::unique_ptr<google::protobuf::Message> request_;
  const std::unique_ptr<google::protobuf::Message> response_;
};

}  // namespace

const Methods::Method* Methods::Find(const std::string& path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? nullptr : &found->second;
}

Methods::Service::Service(Methods& methods, const std::string& name, Admit admit)
    : methods_(methods), service_(Describe(name)), admit_(std::move(admit)) {}

const google::protobuf::MethodDescriptor& Methods::Service::Described(
    const std::string& method, const google::protobuf::Descriptor& request,
    const google::protobuf::Descriptor& response) const {
  const auto* described = service_.FindMethodByName(method);
  CHECK(described != nullptr, "{} has no method {}", service_.full_name(), method);
  CHECK(described->input_type() == &request && described->output_type() == &response,
        "the handler of {} has other message types than the .proto file", described->full_name());
  return *described;
}

void Methods::Service::AddIgnored(const std::string& method) {
  const auto* described = service_.FindMethodByName(method);
  CHECK(described != nullptr, "{} has no method {}", service_.full_name(), method);
  AddMethod(*described, [described] { return std::make_unique<IgnoredMessages>(*described); });
}

void Methods::Service::AddMethod(const google::protobuf::MethodDescriptor& method,
                                 std::function<std::unique_ptr<CallMessages>()> new_messages) {
  methods_.methods_["/" + service_.full_name() + "/" + method.name()] = {admit_,
                                                                         std::move(new_messages)};
}

Call::Call(const Source& source)
    : id_(NextId()), source_(source), stream_(&context_), over_event_(*this) {
  context_.AsyncNotifyWhenDone(over_event_.Tag());
  source_.service.RequestCall(&context_, &stream_, &source_.queue, &source_.queue, Tag());
}

void Call::On(Core& core, bool ok) {
  switch (state_) {
    case State::kAwaited:
      if (!ok) {  // the server shuts down
        delete this;
        return;
      }
      Await(source_);
      OnArrived(core);
      return;
    case State::kReading:
      OnRead(core, ok);
      return;
    case State::kServed:
      OnWritten(ok);
      return;
    case State::kAnswered:
      state_ = State::kEnded;
      if (over_) End(core);
      return;
    case State::kEnded:  // dropped during a write
      End(core);
      return;
  }
}

void Call::OnArrived(const Core& core) {
  const Methods::Method* method = source_.methods.Find(context_.method());
  if (method == nullptr) {
    Refuse(Unimplemented("the master has no method {}", context_.method()));
    return;
  }
  if (const Status status = method->admit(core, context_); !status.ok()) {
    Refuse(status);
    return;
  }
  messages_ = method->new_messages();
  state_ = State::kReading;
  stream_.Read(&received_, Tag());
}

void Call::OnRead(Core& core, bool ok) {
  if (over_ || !ok) {
    Refuse(Cancelled("the client disconnected before its request was complete"));
    return;
  }
  const grpc::Status parsed = grpc::SerializationTraits<google::protobuf::Message>::Deserialize(
      &received_, &messages_->request());
  received_.Clear();
  if (!parsed.ok()) {
    Refuse(InvalidArgument("the request of {} cannot be parsed as a {}", context_.method(),
                           messages_->request().GetTypeName()));
    return;
  }
  state_ = State::kServed;
  messages_->Handle(core, *this);
}

void Call::OnWritten(bool ok) {
  writing_ = false;
  if (ok && !over_ && on_written_) on_written_();
}

void Call::OnOver(Core& core) {
  over_ = true;
  if (state_ == State::kEnded) {
    End(core);
  } else if (state_ == State::kServed && on_disconnect_) {
    const auto on_disconnect = std::move(on_disconnect_);
    on_disconnect(core);
  }
}

void Call::Refuse(const Status& status) {
  state_ = State::kAnswered;
  stream_.Finish(rpc::ToGrpc(status), Tag());
}

void Call::Answer(const Status& status) {
  if (!status.ok()) {
    Refuse(status);
    return;
  }
  state_ = State::kAnswered;
  stream_.WriteAndFinish(Serialized(messages_->response()), grpc::WriteOptions(), grpc::Status::OK,
                         Tag());
}

void Call::Write(const google::protobuf::Message& message) {
  writing_ = true;
  stream_.Write(Serialized(message), Tag());
}

void Call::Drop() {
  state_ = State::kEnded;
  if (!writing_) delete this;
}

void Call::End(Core& core) {
  if (on_lost_ && context_.IsCancelled()) on_lost_(core);
  delete this;
}

}  // namespace edl::master
