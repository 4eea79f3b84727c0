#include "master/service/token_check.h"

#include "base/secret.h"

namespace edl::master {

Status CheckToken(const grpc::ServerContext& context, const std::string& token,
                  std::string_view fix) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  if (found == metadata.end()) return Unauthenticated("the call has no token; {}", fix);
  if (!SecretsEqual({found->second.data(), found->second.size()}, "Bearer " + token)) {
    return Unauthenticated("the call has a wrong token; {}", fix);
  }
  return Ok();
}

}  // namespace edl::master
