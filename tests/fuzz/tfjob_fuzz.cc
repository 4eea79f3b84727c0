// The input is {"job": ..., "pods": [...], "services": [...], "pod_group": ...}: objects as an API
// server returns them, with any mistakes. The job is rejected with a message, or a pass decides
// about it. A second pass with the status of the first decides the same.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reconciler/labels.h"
#include "reconciler/reconcile.h"
#include "reconciler/replica_pod.h"
#include "reconciler/tfjob.h"

#include "base/check.h"
#include "base/json.h"
#include "kube/object.h"

namespace {

using edl::FieldAt;
using edl::ListAt;
using edl::kube::Object;
using nlohmann::json;
using namespace edl::reconciler;  // NOLINT(google-build-using-namespace)

constexpr edl::WallTime kNow{std::chrono::seconds(1'700'000'000)};
// Larger jobs only make the fuzzer slow.
constexpr int64_t kMostReplicas = 20;

Observed Read(const TFJob& job, const json& input) {
  Observed out{.job = job, .pods = {}, .services = {}, .pod_group = {}, .shards = {}};
  for (const json& each : ListAt(input, {"pods"})) {
    if (const auto pod = ReadPod(Object(each))) out.pods.push_back(*pod);
  }
  for (const json& each : ListAt(input, {"services"})) {
    if (const auto service = ReadService(Object(each))) out.services.push_back(*service);
  }
  if (const json& group = FieldAt(input, {"pod_group"}); group.is_object()) {
    out.pod_group = Object(group);
  }
  return out;
}

void CheckPasses(const Observed& first, const char* scheduler) {
  Settings settings;
  settings.pods = {.cluster_domain = "", .gang_scheduler = scheduler};
  const Plan plan = Reconcile(first, settings, kNow);
  const json written = StatusJson(plan.status, json());
  Observed second = first;
  second.job.status = ParseStatus(written);
  const json again = StatusJson(Reconcile(second, settings, kNow).status, json());
  CHECK(again == written, "a second pass changes the status {} to {}", edl::Dump(written),
        edl::Dump(again));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const json input = edl::ReadJson({reinterpret_cast<const char*>(data), size});
  const Object object(FieldAt(input, {"job"}));
  const auto job = ParseTFJob(object);
  if (!job.ok()) {
    CHECK(!job.status().message().empty(), "a job was rejected without a reason");
    const Plan plan =
        RejectInvalid(Read(ParseRejected(object), input), job.status().message(), kNow);
    CHECK(plan.status.conditions.finished(), "a job that is not valid goes on");
    return 0;
  }
  if (job->total_replicas() > kMostReplicas) return 0;
  const Observed observed = Read(*job, input);
  for (const char* scheduler : {"", "volcano", "plugin"}) CheckPasses(observed, scheduler);
  return 0;
}
