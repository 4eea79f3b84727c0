#include "master/context.h"

namespace edl::master {

Status CheckLeasesShards(const job::JobSpec& spec) {
  if (spec.need_task_manager) return Ok();
  return FailedPrecondition(
      "this job was started with --need_task_manager=false, so its master leases no shards; start "
      "it without the flag, or divide the data in the program");
}

void CloseSession(const Context& context, Incarnation incarnation) {
  context.dispatcher.Reclaim(incarnation, context.now);
  context.sync.SessionGone(incarnation);
  context.staleness.Leave(incarnation);
  context.sessions.Close(incarnation);
}

}  // namespace edl::master
