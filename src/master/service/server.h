#pragma once

#include <memory>
#include <string>

#include <grpcpp/generic/async_generic_service.h>

#include "base/status.h"
#include "job/job_spec.h"
#include "master/service/call.h"

namespace grpc {
class CompletionQueue;
class Server;
class ServerCompletionQueue;
}  // namespace grpc

namespace edl::master {

class Core;

// The master's gRPC server with both services. Its calls wait on its queue for the loop.
class Server {
 public:
  // Listens on `address`, "127.0.0.1:23456". Unavailable: somebody else does. `job` and `core`
  // outlive the server.
  static Result<std::unique_ptr<Server>> Start(const std::string& address, const std::string& token,
                                               const job::JobSpec& job, Core& core);
  // Calls that are still held end without an answer.
  ~Server();

  // What the loop runs on: every tag is a Loop::Event.
  grpc::CompletionQueue& queue();
  // The one that was chosen where the address has port 0.
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
