#include "master/replicas/local_address.h"

#include <fmt/format.h>

namespace edl::master {

std::string LocalAddress(ReplicaRef replica) {
  const int64_t id = replica.id % 65000 + 1;
  return fmt::format("127.{}.{}.{}", 1 + static_cast<int>(replica.role), id / 256, id % 256);
}

}  // namespace edl::master
