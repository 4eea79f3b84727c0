#include "ps/process/metrics_server.h"

#include "base/secret.h"
#include "ps/metrics.h"

namespace edl::ps {
namespace {

http::Page MetricsPage(ParameterServer& server, const std::string& token,
                       const http::PageRequest& request) {
  if (!token.empty() && !SecretsEqual(request.authorization, "Bearer " + token)) {
    return {.status = 401,
            .text = "this page requires the job's token: Authorization: Bearer TOKEN\n"};
  }
  return {.text = MetricsText(server.State()), .type = "text/plain; version=0.0.4"};
}

}  // namespace

Result<std::unique_ptr<http::PageServer>> StartMetricsServer(ParameterServer& server,
                                                             const std::string& host, int port,
                                                             const std::string& token) {
  return http::PageServer::Start(
      {.host = host, .port = port, .flag = "--http_port"},
      {{"/healthz", [](const http::PageRequest&) { return http::Page{.text = "ok\n"}; }},
       {"/metrics", [&server, token](const http::PageRequest& request) {
          return MetricsPage(server, token, request);
        }}});
}

}  // namespace edl::ps
