#pragma once

#include "base/clock.h"
#include "base/status.h"
#include "job/job_spec.h"
#include "master/ledger/ledger.h"
#include "master/model/model_job.h"
#include "master/outbox.h"
#include "master/progress_log.h"
#include "master/replicas/replica_keeper.h"
#include "master/sessions/session.h"
#include "master/shards/dispatcher.h"
#include "master/sync/rendezvous.h"
#include "master/sync/staleness_tracker.h"
#include "master/sync/sync_primitives.h"

namespace edl::master {

// The parts of the core that both APIs use. All of them outlive the APIs.
//
// Confined: use it on the master's loop.
struct Context {
  Sessions& sessions;
  Dispatcher& dispatcher;
  SyncPrimitives& sync;
  StalenessTracker& staleness;
  Rendezvous& rendezvous;
  ReplicaKeeper& keeper;
  ModelJob& model;
  ProgressLog& progress;
  Outbox& outbox;
  const job::JobSpec& spec;
  const Time& now;  // loop time: stands still while the loop does
};

// FailedPrecondition: the master of this job leases no shards (--need_task_manager=false).
Status CheckLeasesShards(const job::JobSpec& spec);

// Ends a session: returns its shards, releases its locks, and removes it.
void CloseSession(const Context& context, Incarnation incarnation);

}  // namespace edl::master
