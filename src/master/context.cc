#include "master/context.h"

namespace edl::master {

Status CheckLeasesShards(const job::JobSpec& spec) {
  if (spec.need_task_manager) return Ok();
  return FailedPrecondition(
      "this job was started with --need_task_manager=false, so its master leases no shards; start "
      "it without the flag, or divide the data in the program");
}

void CloseSession(const Context& context, Incarnation incarnation) {
  const Session* session = context.sessions.Find(incarnation);
  if (session == nullptr) return;
  const ReplicaRef replica = session->replica;
  context.dispatcher.Reclaim(incarnation, context.now);
  context.sync.SessionGone(incarnation);
  context.staleness.Leave(incarnation);
  context.sessions.Close(incarnation);
  if (!context.spec.external_replicas || !context.sessions.Of(replica).empty()) return;
  context.keeper.OnLeft(replica);
  context.sync.ReplicaGone(replica);
}

}  // namespace edl::master
