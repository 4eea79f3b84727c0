#include "ps/process/metrics_server.h"

#include "base/secret.h"
#include "ps/metrics.h"

namespace edl::ps {
namespace {

http::Page MetricsPage(ParameterServer& server, const std::string& token,
                       const metrics::Labels& process_labels, const http::PageRequest& request) {
  if (!token.empty() && !SecretsEqual(request.authorization, "Bearer " + token)) {
    return {.status = 401,
            .text = "this page requires the job's token: Authorization: Bearer TOKEN\n"};
  }
  const metrics::Format format = metrics::FormatFor(request.accept);
  return {.text = MetricsText(server.State(), format, process_labels),
          .type = std::string(metrics::ContentTypeOf(format))};
}

}  // namespace

Result<std::unique_ptr<http::PageServer>> StartMetricsServer(
    ParameterServer& server, const std::string& host, int port, const std::string& token,
    const metrics::Labels& process_labels) {
  return http::PageServer::Start(
      {.host = host, .port = port, .flag = "--http_port"},
      {{"/healthz", [](const http::PageRequest&) { return http::Page{.text = "ok\n"}; }},
       {"/metrics", [&server, token, process_labels](const http::PageRequest& request) {
          return MetricsPage(server, token, process_labels, request);
        }}});
}

}  // namespace edl::ps
