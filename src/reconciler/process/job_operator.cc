#include "reconciler/process/job_operator.h"

#include <chrono>
#include <exception>
#include <utility>

#include "reconciler/pod_group.h"
#include <malloc.h>

#include "base/json.h"
#include "base/log.h"
#include "base/retry.h"

namespace edl::reconciler {
namespace {

// Events wait in a queue while many jobs start.
constexpr size_t kMostQueuedEvents = 10'000;
// Logs are explanations. Reading one from an unreachable node must not keep a thread busy.
constexpr std::chrono::seconds kLogTimeout{2};
constexpr std::chrono::seconds kLongestDelayInOutage{5};

std::string OurLabels() { return fmt::format("{}={}", kOperatorNameLabel, kControllerName); }

void ReduceObject(kube::Object& object) { object.metadata().erase("managedFields"); }

}  // namespace

JobOperator::JobOperator(kube::Connection& connection, const kube::Timing& timing,
                         const Options& options)
    : connection_(connection),
      timing_(timing),
      options_(options),
      queue_(timing.clock),
      cache_(timing.clock, [this](const kube::ObjectKey& key) { queue_.Add(key); }),
      recorder_(connection, timing,
                {.component = kControllerName,
                 .instance = options.instance,
                 .max_queued = kMostQueuedEvents,
                 .routine = {"SuccessfulCreate", "SuccessfulDelete", "ExitedWithCode"}}),
      client_(connection, timing,
              {.calls_per_second = options.calls_per_second,
               .burst = options.burst,
               .tries = 3,
               .retry_timeout = std::chrono::seconds(15),
               .may_write = options.may_write}),
      logs_(connection, timing,
            {.calls_per_second = options.calls_per_second,
             .burst = options.burst,
             .timeout = kLogTimeout,
             .tries = 1}),
      writer_(
          client_, logs_, cache_, recorder_,
          {.pod_groups = PodGroupsOf(options.pods.gang_scheduler), .may_write = options.may_write}),
      controller_(cache_, writer_, recorder_, metrics_, timing.clock, options.pods,
                  options.shards) {}

JobOperator::~JobOperator() { Stop(); }

void JobOperator::Watch(const kube::Resource& resource, const std::string& labels,
                        kube::Reflector::Listener listener, void (*reduce)(kube::Object&)) {
  // Reports whether everything has been listed after each list.
  auto on_list = std::move(listener.on_list);
  listener.on_list = [this, on_list = std::move(on_list)](kube::ObjectList list) {
    on_list(std::move(list));
    // A list of a large cluster is large, and the allocator would keep its memory.
    malloc_trim(0);
    CheckReady();
  };
  kube::Reflector::Options options = options_.watch;
  options.reduce = reduce;
  reflectors_.push_back(std::make_unique<kube::Reflector>(
      connection_, kube::Scope{resource, options_.ns, {.labels = labels}}, timing_,
      std::move(listener), options));
  threads_.emplace_back(
      [reflector = reflectors_.back().get(), stop = stop_.get_token()] { reflector->Run(stop); });
}

void JobOperator::WatchPriorities() {
  const auto read = [this] {
    if (!priorities_->synced()) return;
    std::map<std::string, int64_t> priorities;
    for (const auto& each : priorities_->List()) {
      priorities[each->name()] = NumberIn(each->fields(), "value");
    }
    controller_.SetPriorities(std::move(priorities));
    for (const kube::ObjectKey& job : cache_.UnfinishedJobs()) queue_.Add(job);
    priorities_known_ = true;
    CheckReady();
  };
  priorities_ = std::make_unique<kube::Informer>(
      connection_, kube::Scope{kube::kPriorityClasses, "", {}}, timing_,
      kube::InformerCallbacks{
          .on_added = [read](const kube::Object&) { read(); },
          .on_updated = [read](const kube::Object&, const kube::Object&) { read(); },
          .on_deleted = [read](const kube::Object&) { read(); },
          .on_synced = read,
          .on_error =
              [this](const Status& error) {
                LOG_WARNING("operator: cannot follow priority classes: {}; retrying",
                            error.message());
                // Jobs run without them, for example if the permission is missing.
                if (IsTransient(error)) return;
                priorities_known_ = true;
                CheckReady();
              }},
      options_.watch);
  threads_.emplace_back([this, stop = stop_.get_token()] { priorities_->Run(stop); });
}

void JobOperator::Start(std::function<void()> on_ready) {
  on_ready_ = std::move(on_ready);
  threads_.emplace_back([this, stop = stop_.get_token()] { recorder_.Run(stop); });
  if (!options_.pods.gang_scheduler.empty()) {
    WatchPriorities();
    Watch(PodGroupsOf(options_.pods.gang_scheduler), "", cache_.PodGroupListener(), ReduceObject);
  }
  Watch(kTFJobs, "", cache_.JobListener(), ReduceObject);
  Watch(kube::kPods, OurLabels(), cache_.PodListener(), ReducePod);
  Watch(kube::kServices, OurLabels(), cache_.ServiceListener(), ReduceObject);
  for (int i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this, stop = stop_.get_token()] { Work(stop); });
  }
}

void JobOperator::CheckReady() {
  const bool gangs = !options_.pods.gang_scheduler.empty();
  if (gangs && !(cache_.pod_groups_listed() && priorities_known_)) return;
  if (!cache_.synced() || ready_.exchange(true)) return;
  on_ready_();
  const MutexLock lock(mutex_);
  became_ready_.NotifyAll();
}

bool JobOperator::AwaitReady(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(mutex_);
    became_ready_.NotifyAll();
  });
  const MutexLock lock(mutex_);
  while (!ready_ && !stop.stop_requested()) became_ready_.Wait(mutex_);
  return !stop.stop_requested();
}

void JobOperator::Work(const std::stop_token& stop) {
  if (!AwaitReady(stop)) return;
  while (const auto key = queue_.Take(stop)) {
    // A defect in the handling of one job must not end the others.
    try {
      SyncOne(*key, stop);
    } catch (const std::exception& error) {
      LOG_ERROR("operator: TFJob {}: {}; retrying", *key, error.what());
      queue_.Failed(*key);
    }
  }
}

void JobOperator::SyncOne(const kube::ObjectKey& key, const std::stop_token& stop) {
  using SyncResult = OperatorMetrics::SyncResult;
  const Time begun = timing_.clock.Now();
  const auto [status, again_at, gone] = controller_.Sync(key, stop);
  const Duration lasted = timing_.clock.Now() - begun;
  if (gone) {
    metrics_.CountSync(SyncResult::kSuccess, lasted);
    return queue_.Forget(key);
  }
  if (again_at) queue_.AddAt(key, timing_.clock.Now() + (*again_at - timing_.clock.WallNow()));
  if (!status.ok()) {
    // Aborted: the job or one of its objects has changed, which is no failure.
    if (status.code() == Code::kAborted) {
      LOG_DEBUG("operator: TFJob {}: {}", key, status.message());
    } else if (status.code() != Code::kCancelled) {
      LOG_WARNING("operator: TFJob {}: {}; retrying", key, status.message());
    }
    metrics_.CountSync(SyncResult::kError, lasted);
    // If the API server is unreachable or the lease is lost, all jobs fail for the same reason, and
    // must not wait for much longer than that lasts.
    const bool outage = IsUnreachable(status) || status.code() == Code::kCancelled;
    queue_.Failed(key, outage ? kLongestDelayInOutage : Duration::max());
    return;
  }
  metrics_.CountSync(again_at ? SyncResult::kRequeueAfter : SyncResult::kSuccess, lasted);
  queue_.Succeeded(key);
}

void JobOperator::Stop() {
  stop_.request_stop();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  threads_.clear();
}

void JobOperator::AddMetrics(metrics::Exposition& out, bool leading) const {
  metrics_.AddTo(out, queue_.counters(), cache_.jobs(), static_cast<size_t>(options_.threads),
                 leading);
}

}  // namespace edl::reconciler
