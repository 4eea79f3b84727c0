#pragma once

#include <chrono>
#include <random>

#include "master/types.h"

namespace edl::master {

// What a schedule is made of, drawn from its seed.
struct Plan {
  static constexpr const char* kDataset = "records";

  int workers = 2;
  bool chief = false;
  DatasetSpec data;
  double kill_rate = 0;    // per worker and second
  double freeze_rate = 0;  // per worker and second
  double crash_rate = 0;   // of the master, per second
  double stall_rate = 0;   // of the master, per second
  double loss = 0;         // of a message
  double repeat = 0;       // of a request
  bool compat_api_mixed = false;
  bool quits_on_error =
      false;  // compatibility API: treats an error as the end of data, like elasticdl_api 1.0.0

  // With parameter servers of ours; else without any.
  bool own_servers = false;
  int servers = 1;
  int lanes = 1;  // of each server
  int64_t recovery_secs = 5;
  int64_t checkpoint_steps = 0;
  int64_t keep_checkpoints = 0;
  int depth = 1;          // pushes of a worker that may be under way
  double move_rate = 0;   // of all buckets to other lanes, per second
  double damage = 0;      // of a checkpoint
  double reset_rate = 0;  // of the dataset, per second
  double zombie = 0;      // of a server that died: it still answers
  double vanish = 0;  // of a server that died: its connections stay open, and no exit is reported
  double blind = 0;   // of a new server: for a while it does not see the checkpoints
  double slow_disk = 0;  // of a save or restore of a lane: it takes up to a minute
  // A save or a restore that makes no progress for so long fails.
  std::chrono::seconds no_progress{120};
  bool fences = true;  // servers that do not hear from the master stop serving
  // Only servers and the master have faults: what is wrong with a connection stays so.
  bool spares_workers = false;
};

Plan MakePlan(std::mt19937_64& random);

}  // namespace edl::master
