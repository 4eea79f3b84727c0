#pragma once

#include <string_view>

#include "base/status.h"

namespace edl::master {

// The error for an entry of the ledger that cannot be used: DataLoss, with the remedy. `why` is a
// clause such as "expected a list".
inline Status DamagedEntry(std::string_view key, std::string_view why) {
  return DataLoss(
      "the entry '{}' of the ledger is damaged: {}; restore ledger.sqlite from a copy, or delete "
      "the job and submit it again",
      key, why);
}

}  // namespace edl::master
