#pragma once

#include <string>

#include "telemetry/curves.h"

#include "base/status.h"
#include "master/ledger/ledger.h"

namespace edl::master {

// A ledger as JSON for users and scripts: datasets with their done ranges by epoch, open leases,
// returned and quarantined shards, sessions, replicas. docs/formats/ledger.md.
Result<std::string> LedgerJson(Ledger& ledger);

// The same for a ledger file that no master has open. NotFound: there is no file at `path`. For
// other errors see Ledger::ReadCopy.
Result<std::string> ReadLedgerJson(const std::string& path);

// The view of a job from its ledger: state, outcome, version and datasets, without replicas,
// because none run. ReadLedgerView has the errors of Ledger::ReadCopy.
Result<job::JobView> LedgerView(Ledger& ledger);
Result<job::JobView> ReadLedgerView(const std::string& path);

// The curves of a job from the ledger file that no master has open. DataLoss: they are damaged. For
// other errors see Ledger::ReadCopy.
Result<telemetry::Curves> ReadLedgerCurves(const std::string& path, const telemetry::Query& query);

}  // namespace edl::master
