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

// A Transport that says who calls, with credentials that are renewed before they run out and once
// more when the server refuses them.
//
// Thread-safe.
class Connection {
 public:
  // A token file is read again after this long, as its owner replaces it at any time.
  static constexpr std::chrono::seconds kTokenFileAge{60};
  // A plugin is asked again this long before its credential ends.
  static constexpr std::chrono::seconds kLeeway{10};

  // `environment`: "NAME=value", for a credential plugin. `clock` outlives the connection.
  Connection(Config config, const Clock& clock, std::vector<std::string> environment);

  const Config& config() const { return config_; }

  // As Transport's, with the headers that say who calls. Unauthenticated cannot come from the
  // credentials' age: a call that is refused with 401 is made a second time with new ones. After
  // one that got no answer, the next opens a connection of its own.
  Result<Response> Call(Request request, const std::stop_token& stop = {});
  Result<Response> Stream(Request request, const Transport::OnData& on_data,
                          const std::stop_token& stop = {});

 private:
  struct Identity {
    std::vector<std::string> headers;
    std::shared_ptr<Transport> transport;  // this connection's, and that of the calls in it
    uint64_t number = 0;
  };

  // Makes a new one where the current one is too old, or is `refused`.
  Result<Identity> Current(uint64_t refused = 0);
  // No new call goes over the connections of this identity.
  void Leave(const Identity& identity);
  Status Renew() REQUIRES(mutex_);
  bool TooOld() const REQUIRES(mutex_);

  const Config config_;
  const Clock& clock_;
  const std::vector<std::string> environment_;

  Mutex mutex_;
  Identity identity_ GUARDED_BY(mutex_);
  Config transport_config_ GUARDED_BY(mutex_);  // with the certificate that is in use
  Time made_at_ GUARDED_BY(mutex_);
  std::optional<WallTime> expires_at_ GUARDED_BY(mutex_);
};

}  // namespace edl::kube
