#include "master/context.h"

namespace edl::master {

void CloseSession(const Context& context, Incarnation incarnation) {
  context.dispatcher.Reclaim(incarnation, context.now);
  context.sync.SessionGone(incarnation);
  context.staleness.Leave(incarnation);
  context.sessions.Close(incarnation);
}

}  // namespace edl::master
