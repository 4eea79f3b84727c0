#pragma once

#include <string>

#include "base/status.h"
#include "master/ledger/ledger.h"

namespace edl::master {

// A ledger for people and scripts: datasets with their done ranges by epoch, open leases, returned
// and quarantined shards, sessions, replicas. docs/formats/ledger.md.
Result<std::string> LedgerJson(Ledger& ledger);

// The same of a ledger that no master has open. NotFound: there is none at `path`.
Result<std::string> ReadLedgerJson(const std::string& path);

// What a ledger knows of its job: state and end, version, datasets. Never replicas, which do not
// run.
Result<job::JobView> LedgerView(Ledger& ledger);
Result<job::JobView> ReadLedgerView(const std::string& path);

}  // namespace edl::master
