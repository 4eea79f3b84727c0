#pragma once

#include <memory>
#include <string>

#include <grpcpp/generic/async_generic_service.h>

#include "base/status.h"
#include "job/job_spec.h"
#include "master/service/attach_service.h"
#include "master/service/call.h"

namespace grpc {
class CompletionQueue;
class Server;
class ServerCompletionQueue;
}  // namespace grpc

namespace edl::master {

class Core;

// The master's gRPC server, with our service and the compatibility services. Its calls are events
// on queue(), which the loop handles.
//
// Confined: create and destroy it on the thread of the process that owns it; the loop uses queue().
class Server {
 public:
  // Listens on `address`, "127.0.0.1:23456". Unavailable: the address is in use. `job`, `core` and
  // the backend of `workers` outlive the server.
  static Result<std::unique_ptr<Server>> Start(const std::string& address, const std::string& token,
                                               const job::JobSpec& job, Core& core,
                                               const AttachedWorkers& workers = {});
  // Ends calls that are still held without an answer.
  ~Server();

  // The completion queue of all calls. Every tag is a Loop::Event.
  grpc::CompletionQueue& queue();
  // The port; chosen by the system if the address has port 0.
  int port() const { return port_; }

 private:
  explicit Server(Core& core);

  Core& core_;
  Methods methods_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace edl::master
