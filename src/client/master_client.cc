#include "client/master_client.h"

#include <limits>

#include <elasticdl/v1/master.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include "rpc/status.h"

namespace edl::client {
namespace {

// The largest response is a ledger of many datasets.
constexpr int kLargestMessage = 256 << 20;

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  // Each client has its own connection, so that a new client does not wait for the reconnect
  // backoff of an older one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kLargestMessage);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

struct MasterClient::Stub {
  std::unique_ptr<elasticdl::v1::Master::Stub> master;

  template <typename Request, typename Response>
  Status Call(grpc::Status (elasticdl::v1::Master::Stub::*method)(grpc::ClientContext*,
                                                                  const Request&, Response*),
              const Request& request, Response& response, const std::string& token,
              std::chrono::milliseconds deadline) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    context.AddMetadata("authorization", "Bearer " + token);
    return rpc::FromGrpc((master.get()->*method)(&context, request, &response));
  }
};

MasterClient::MasterClient(const std::string& address, std::string token)
    : token_(std::move(token)),
      stub_(std::make_unique<Stub>(Stub{elasticdl::v1::Master::NewStub(Connect(address))})) {}

MasterClient::~MasterClient() = default;

Result<job::JobView> MasterClient::GetJob(std::chrono::milliseconds deadline) {
  elasticdl::v1::GetJobResponse response;
  EDL_RETURN_IF_ERROR(stub_->Call(&elasticdl::v1::Master::Stub::GetJob,
                                  elasticdl::v1::GetJobRequest(), response, token_, deadline));
  return job::JobView::FromJson(response.view_json());
}

Result<std::string> MasterClient::GetLedger(std::chrono::milliseconds deadline) {
  elasticdl::v1::GetLedgerResponse response;
  EDL_RETURN_IF_ERROR(stub_->Call(&elasticdl::v1::Master::Stub::GetLedger,
                                  elasticdl::v1::GetLedgerRequest(), response, token_, deadline));
  return response.ledger_json();
}

Result<telemetry::Curves> MasterClient::GetTelemetry(const telemetry::Query& query,
                                                     std::chrono::milliseconds deadline) {
  elasticdl::v1::GetTelemetryRequest request;
  request.mutable_series()->Add(query.series.begin(), query.series.end());
  request.set_max_points(static_cast<uint32_t>(query.max_points));
  request.set_from(query.from);
  if (query.to < std::numeric_limits<int64_t>::max()) request.set_to(query.to);
  elasticdl::v1::GetTelemetryResponse response;
  EDL_RETURN_IF_ERROR(
      stub_->Call(&elasticdl::v1::Master::Stub::GetTelemetry, request, response, token_, deadline));
  return telemetry::Curves::FromJson(response.curves_json());
}

Status MasterClient::Scale(int num_workers, std::chrono::milliseconds deadline) {
  elasticdl::v1::ScaleRequest request;
  request.set_num_workers(num_workers);
  elasticdl::v1::ScaleResponse response;
  return stub_->Call(&elasticdl::v1::Master::Stub::Scale, request, response, token_, deadline);
}

Status MasterClient::Stop(const std::string& reason, std::chrono::milliseconds deadline) {
  elasticdl::v1::StopRequest request;
  request.set_reason(reason);
  elasticdl::v1::StopResponse response;
  return stub_->Call(&elasticdl::v1::Master::Stub::Stop, request, response, token_, deadline);
}

}  // namespace edl::client
