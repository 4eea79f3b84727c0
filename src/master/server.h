#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "job/job_spec.h"
#include "master/loop.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace edl::master {

// The master's gRPC server with both doors. Calls go to `loop`, which outlives it.
class Server {
 public:
  // Listens on `address`, "127.0.0.1:23456". Unavailable: somebody else does.
  static Result<std::unique_ptr<Server>> Start(const std::string& address, const std::string& token,
                                               const job::JobSpec& job, Loop& loop);
  ~Server();

  // The port that was chosen for a port 0.
  int port() const { return port_; }

 private:
  Server();

  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace edl::master
