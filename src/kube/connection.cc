#include "kube/connection.h"

#include <system_error>
#include <utility>

#include "base/base64.h"
#include "base/file.h"
#include "base/retry.h"
#include "base/text.h"
#include "kube/exec_plugin.h"
#include "kube/text.h"

namespace edl::kube {
namespace {

void AddImpersonation(const Impersonation& as, std::vector<std::string>& headers) {
  if (as.user.empty()) return;
  headers.push_back("Impersonate-User: " + as.user);
  if (!as.uid.empty()) headers.push_back("Impersonate-Uid: " + as.uid);
  for (const std::string& group : as.groups) headers.push_back("Impersonate-Group: " + group);
}

constexpr int kUnauthorized = 401;

// Unavailable: this process can start no further thread now.
Result<std::shared_ptr<Transport>> MakeTransport(const Config& config) {
  try {
    return std::make_shared<Transport>(config);
  } catch (const std::system_error& error) {
    return Unavailable("{}: cannot start the thread of its connections: {}", config.server,
                       error.what());
  }
}

}  // namespace

Connection::Connection(Config config, const Clock& clock, std::vector<std::string> environment)
    : config_(std::move(config)), clock_(clock), environment_(std::move(environment)) {}

bool Connection::Expired() const {
  if (identity_.transport == nullptr) return true;
  if (expires_at_) return clock_.WallNow() >= *expires_at_ - kLeeway;
  const bool from_file = !config_.credentials.exec && !config_.credentials.token_file.empty();
  return from_file && clock_.Now() - made_at_ >= kTokenFileAge;
}

std::string Connection::CurrentAuthority() const {
  if (!config_.certificate_authority_file.empty()) {
    const auto read = ReadFile(config_.certificate_authority_file);
    if (read.ok() && !Trim(*read).empty()) return *read;
  }
  // The file may be missing while it is replaced.
  return identity_.transport == nullptr ? config_.certificate_authority
                                        : transport_config_.certificate_authority;
}

Status Connection::Renew() {
  const Credentials& credentials = config_.credentials;
  Config config = config_;
  std::string token = credentials.token;
  expires_at_.reset();
  if (credentials.exec) {
    EDL_ASSIGN_OR_RETURN(ExecCredential made,
                         RunExecPlugin(*credentials.exec, config_, environment_));
    token = std::move(made.token);
    config.credentials.client_certificate = std::move(made.client_certificate);
    config.credentials.client_key = std::move(made.client_key);
    expires_at_ = made.expires_at;
  } else if (!credentials.token_file.empty()) {
    auto read = ReadFile(credentials.token_file);
    // The file may be missing while it is replaced. The old token stays valid for a while.
    if (!read.ok() && identity_.transport != nullptr) return Ok();
    if (!read.ok()) return FailedPrecondition("{}", read.status().message());
    token = Trim(*read);
    config.certificate_authority = CurrentAuthority();
  }
  std::vector<std::string> headers;
  if (!token.empty()) {
    headers.push_back("Authorization: Bearer " + token);
  } else if (!credentials.username.empty()) {
    headers.push_back("Authorization: Basic " +
                      EncodeBase64(credentials.username + ":" + credentials.password));
  }
  AddImpersonation(credentials.as, headers);
  // A TLS connection keeps the certificates that it was opened with.
  if (identity_.transport == nullptr ||
      transport_config_.certificate_authority != config.certificate_authority ||
      transport_config_.credentials.client_certificate != config.credentials.client_certificate) {
    EDL_ASSIGN_OR_RETURN(identity_.transport, MakeTransport(config));
    transport_config_ = std::move(config);
  }
  identity_.headers = std::move(headers);
  ++identity_.number;
  made_at_ = clock_.Now();
  return Ok();
}

Result<Connection::Identity> Connection::Current(uint64_t refused) {
  const MutexLock lock(mutex_);
  if (Expired() || refused == identity_.number) EDL_RETURN_IF_ERROR(Renew());
  return identity_;
}

// A peer that disappears without closing its connections leaves some that look alive. Streams that
// share one would each wait for its timeout, one after the other.
void Connection::Abandon(const Identity& identity) {
  const MutexLock lock(mutex_);
  if (identity_.transport != identity.transport) return;
  auto next = MakeTransport(transport_config_);
  if (next.ok()) identity_.transport = *std::move(next);
}

Result<Response> Connection::Call(Request request, const std::stop_token& stop) {
  return Stream(std::move(request), {}, stop);
}

Result<Response> Connection::Stream(Request request, const Transport::OnData& on_data,
                                    const std::stop_token& stop) {
  EDL_ASSIGN_OR_RETURN(Identity identity, Current());
  const std::vector<std::string> own = request.headers;
  const auto call = [&] {
    request.headers = own;
    request.headers.insert(request.headers.end(), identity.headers.begin(), identity.headers.end());
    return identity.transport->Stream(request, on_data, stop);
  };
  Result<Response> response = call();
  if (response.ok() && response->status == kUnauthorized) {
    EDL_ASSIGN_OR_RETURN(identity, Current(identity.number));
    response = call();
  }
  if (IsUnreachable(response.status())) Abandon(identity);
  return response;
}

}  // namespace edl::kube
