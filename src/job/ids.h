#pragma once

#include <cstdint>

#include "base/strong_id.h"

namespace edl::job {

// The numbers by which the master, the parameter servers and their clients name things to each
// other. Each has its own type, so that two of them cannot be swapped. Messages and files contain
// the plain integer. In all of them 0 means "none" unless the comment says otherwise.

// A lease of a shard. Leases rise over the whole ledger, and none is used twice.
using LeaseId = StrongId<struct LeaseIdTag, uint64_t>;
// The lease of a client that has no master and counts its batches itself. It never ends, and is
// newer than every lease of a master.
inline constexpr LeaseId kOwnLease{UINT64_MAX};
// A process that joined the master. From the ledger; none is used twice.
using Incarnation = StrongId<struct IncarnationTag, uint64_t>;
// A process of a parameter server. Random; the next process in the same slot has another one.
using PsIncarnation = StrongId<struct PsIncarnationTag, uint64_t>;
// Rises each time the master restores a parameter server.
using PsEpoch = StrongId<struct PsEpochTag, uint64_t>;
// A ledger. Random; two runs of a job in one folder have two of them.
using LedgerId = StrongId<struct LedgerIdTag, uint64_t>;
// A dataset of a ledger.
using DatasetId = StrongId<struct DatasetIdTag, int64_t>;

// A lane of a parameter server, from 0 within its server.
using LaneInServer = StrongId<struct LaneInServerTag, uint32_t>;
// The same lane, counted over the lanes of all servers: those of server 0 first. 0 is a lane.
using LaneInJob = StrongId<struct LaneInJobTag, uint32_t>;

}  // namespace edl::job
