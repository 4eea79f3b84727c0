#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "reconciler/process/cluster_writer.h"
#include "reconciler/process/controller.h"
#include "reconciler/process/job_cache.h"
#include "reconciler/process/operator_metrics.h"

#include "base/clock.h"
#include "base/mutex.h"
#include "kube/client.h"
#include "kube/connection.h"
#include "kube/event_recorder.h"
#include "kube/informer.h"
#include "kube/reflector.h"
#include "kube/timing.h"
#include "kube/work_queue.h"

namespace edl::reconciler {

// Runs all TFJobs of a cluster or namespace: the watches, the queue, and the threads that take from
// it. No job is touched before all lists have arrived.
//
// Thread-safe, except Start and Stop, which must not overlap.
class JobOperator {
 public:
  struct Options {
    std::string ns;        // empty: all namespaces
    std::string instance;  // the host name that events show
    PodSettings pods;
    ShardSettings shards;
    int threads = 4;
    double calls_per_second = 200;
    int burst = 400;
    // Checked before each write: only the holder of the lease may write.
    std::function<bool()> may_write = [] { return true; };
    kube::Reflector::Options watch = {};
  };

  // `connection` outlives this.
  JobOperator(kube::Connection& connection, const kube::Timing& timing, const Options& options);
  ~JobOperator();
  JobOperator(const JobOperator&) = delete;
  JobOperator& operator=(const JobOperator&) = delete;

  // Starts the threads. Call it once. `on_ready` is called on one of them, when all first lists
  // have arrived.
  void Start(std::function<void()> on_ready);
  // Lets running calls end, and joins all threads. The destructor does it too.
  void Stop();

  bool ready() const { return ready_; }
  // Adds what /metrics shows of TFJobs. `leading`: whether this process holds the lease.
  void AddMetrics(metrics::Exposition& out, bool leading) const;

 private:
  void Watch(const kube::Resource& resource, const std::string& labels,
             kube::Reflector::Listener listener, void (*reduce)(kube::Object&));
  void WatchPriorities();
  void Work(const std::stop_token& stop);
  void SyncOne(const kube::ObjectKey& key, const std::stop_token& stop);
  void CheckReady();
  // Blocks until all lists have arrived. Returns false if `stop` was requested before.
  bool AwaitReady(const std::stop_token& stop);

  kube::Connection& connection_;
  const kube::Timing timing_;
  const Options options_;

  kube::WorkQueue queue_;
  JobCache cache_;
  OperatorMetrics metrics_;
  kube::EventRecorder recorder_;
  kube::Client client_;
  kube::Client logs_;
  ClusterWriter writer_;
  JobController controller_;

  std::function<void()> on_ready_;
  std::atomic<bool> ready_ = false;
  std::atomic<bool> priorities_known_ = false;  // also true if they cannot be read
  Mutex mutex_;
  CondVar became_ready_;
  std::vector<std::unique_ptr<kube::Reflector>> reflectors_;
  std::unique_ptr<kube::Informer> priorities_;
  std::stop_source stop_;
  std::vector<std::thread> threads_;
};

}  // namespace edl::reconciler
