#include "master/process/http_pages.h"

#include <chrono>
#include <future>
#include <utility>

#include "metrics/exposition.h"
#include "metrics/process_metrics.h"

#include "base/secret.h"
#include "master/metrics.h"

namespace edl::master {
namespace {

constexpr std::chrono::seconds kLoopTimeout{2};

// The metrics of a job while the loop adds them. The page and the work that it posted own it,
// because either may outlive the other.
struct Reading {
  explicit Reading(metrics::Format format, const std::string& job_name)
      : out(format, {{"job_name", job_name}}) {}

  metrics::Exposition out;
  std::promise<void> done;
};

http::Page MetricsPage(Loop& loop, const HttpOptions& options, const http::PageRequest& request) {
  if (!options.token.empty() && !SecretsEqual(request.authorization, "Bearer " + options.token)) {
    return {.status = 401,
            .text = "this page requires the job's token: Authorization: Bearer TOKEN\n"};
  }
  const metrics::Format format = metrics::FormatFor(request.accept);
  const auto reading = std::make_shared<Reading>(format, options.job_name);
  std::future<void> done = reading->done.get_future();
  loop.Post([reading, &loop](Core& core) {
    AddMetrics(core, {.rounds = loop.rounds(), .commits = loop.commits()}, reading->out);
    reading->done.set_value();
  });
  if (done.wait_for(kLoopTimeout) != std::future_status::ready) {
    return {.status = 503, .text = "the master is busy, or waits for its disk; try again\n"};
  }
  metrics::AddProcess(reading->out);
  return {.text = reading->out.Finish(), .type = std::string(metrics::ContentTypeOf(format))};
}

}  // namespace

Result<std::unique_ptr<http::PageServer>> StartPages(Loop& loop, const HttpOptions& options) {
  return http::PageServer::Start(
      {.host = options.host, .port = options.port, .flag = "--master_http_port"},
      {{"/healthz", [](const http::PageRequest&) { return http::Page{.text = "ok\n"}; }},
       {"/metrics", [&loop, options](const http::PageRequest& request) {
          return MetricsPage(loop, options, request);
        }}});
}

}  // namespace edl::master
