#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "kube/config.h"
#include "kube/transport.h"

namespace edl::kube {

// A Transport that authenticates its calls. It renews credentials before they expire, and once more
// when the server rejects them.
//
// Thread-safe.
class Connection {
 public:
  // A token file is read again after this time, because its owner may replace it at any time. The
  // file of the certificate authority is read again with it.
  static constexpr std::chrono::seconds kTokenFileAge{60};
  // A credential plugin runs again this long before its credential expires.
  static constexpr std::chrono::seconds kLeeway{10};

  // `environment`: "NAME=value" strings for a credential plugin. `clock` outlives the connection.
  Connection(Config config, const Clock& clock, std::vector<std::string> environment);

  const Config& config() const { return config_; }

  // Like the methods of Transport, with authentication headers. A call that fails with 401 is
  // repeated once with new credentials, so Unauthenticated never means expired credentials. After a
  // call without a response, the next call opens a new connection.
  Result<Response> Call(Request request, const std::stop_token& stop = {});
  Result<Response> Stream(Request request, const Transport::OnData& on_data,
                          const std::stop_token& stop = {});

 private:
  struct Identity {
    std::vector<std::string> headers;
    std::shared_ptr<Transport> transport;  // owned by this connection and by running calls
    uint64_t number = 0;
  };

  // Renews the identity if it has expired or is the `refused` one.
  Result<Identity> Current(uint64_t refused = 0);
  // Makes new calls open new connections instead of those of this identity.
  void Abandon(const Identity& identity);
  Status Renew() REQUIRES(mutex_);
  std::string CurrentAuthority() const REQUIRES(mutex_);
  bool Expired() const REQUIRES(mutex_);

  const Config config_;
  const Clock& clock_;
  const std::vector<std::string> environment_;

  Mutex mutex_;
  Identity identity_ GUARDED_BY(mutex_);
  Config transport_config_ GUARDED_BY(mutex_);  // with the certificates in use
  Time made_at_ GUARDED_BY(mutex_);
  std::optional<WallTime> expires_at_ GUARDED_BY(mutex_);
};

}  // namespace edl::kube
