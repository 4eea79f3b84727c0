#include "client/testing/fake_master_service.h"

#include <elasticdl/v1/master.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include "base/mutex.h"
#include "rpc/status.h"

namespace edl::client {

namespace v1 = elasticdl::v1;

class FakeMasterService::Service final : public v1::Master::CallbackService {
 public:
  explicit Service(std::string token) : token_(std::move(token)) {}

  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context, const v1::GetJobRequest*,
                                   v1::GetJobResponse* response) override {
    MutexLock lock(mutex);
    response->set_view_json(view.ToJson());
    return Answer(context);
  }

  grpc::ServerUnaryReactor* GetLedger(grpc::CallbackServerContext* context,
                                      const v1::GetLedgerRequest*,
                                      v1::GetLedgerResponse* response) override {
    MutexLock lock(mutex);
    response->set_ledger_json(ledger);
    return Answer(context);
  }

  grpc::ServerUnaryReactor* GetTelemetry(grpc::CallbackServerContext* context,
                                         const v1::GetTelemetryRequest* request,
                                         v1::GetTelemetryResponse* response) override {
    MutexLock lock(mutex);
    asked_series = {request->series().begin(), request->series().end()};
    response->set_curves_json(curves);
    return Answer(context);
  }

  grpc::ServerUnaryReactor* Scale(grpc::CallbackServerContext* context,
                                  const v1::ScaleRequest* request, v1::ScaleResponse*) override {
    MutexLock lock(mutex);
    scaled_to = request->num_workers();
    return Answer(context);
  }

  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context,
                                 const v1::StopRequest* request, v1::StopResponse*) override {
    MutexLock lock(mutex);
    stop_reason = request->reason();
    return Answer(context);
  }

  // What the fake returns and what it was called with, for FakeMasterService.
  Mutex mutex;
  job::JobView view GUARDED_BY(mutex);
  std::string ledger GUARDED_BY(mutex);
  std::string curves GUARDED_BY(mutex);
  std::vector<std::string> asked_series GUARDED_BY(mutex);
  int scaled_to GUARDED_BY(mutex) = -1;
  std::string stop_reason GUARDED_BY(mutex);

 private:
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const auto given = context->client_metadata().find("authorization");
    const bool known =
        given != context->client_metadata().end() &&
        std::string(given->second.data(), given->second.size()) == "Bearer " + token_;
    reactor->Finish(known ? grpc::Status::OK
                          : rpc::ToGrpc(Unauthenticated("wrong token for this job")));
    return reactor;
  }

  const std::string token_;
};

struct FakeMasterService::Running {
  explicit Running(std::string token) : service(std::move(token)) {}
  Service service;
  std::unique_ptr<grpc::Server> server;
  std::string address;
};

FakeMasterService::FakeMasterService(std::string token)
    : running_(std::make_unique<Running>(std::move(token))) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&running_->service);
  running_->server = builder.BuildAndStart();
  CHECK(running_->server != nullptr && port > 0,
        "the fake master cannot listen on a loopback port");
  running_->address = "127.0.0.1:" + std::to_string(port);
}

FakeMasterService::~FakeMasterService() { running_->server->Shutdown(); }

const std::string& FakeMasterService::address() const { return running_->address; }

void FakeMasterService::SetView(const job::JobView& view) {
  MutexLock lock(running_->service.mutex);
  running_->service.view = view;
}

void FakeMasterService::SetLedger(std::string json) {
  MutexLock lock(running_->service.mutex);
  running_->service.ledger = std::move(json);
}

void FakeMasterService::SetCurves(std::string json) {
  MutexLock lock(running_->service.mutex);
  running_->service.curves = std::move(json);
}

std::vector<std::string> FakeMasterService::asked_series() const {
  MutexLock lock(running_->service.mutex);
  return running_->service.asked_series;
}

int FakeMasterService::scaled_to() const {
  MutexLock lock(running_->service.mutex);
  return running_->service.scaled_to;
}

std::string FakeMasterService::stop_reason() const {
  MutexLock lock(running_->service.mutex);
  return running_->service.stop_reason;
}

}  // namespace edl::client
