#pragma once

#include <functional>
#include <string>

#include "backend/attached_backend.h"
#include "job/job_spec.h"
#include "master/service/call.h"

namespace edl::master {

// What the calls Attach and Detach use, in a job with --attach_workers.
struct AttachedWorkers {
  backend::AttachedBackend* backend = nullptr;  // null: the job starts its workers itself
  // Runs work on the master's loop: Loop::Post.
  std::function<void(std::function<void(Core&)>)> post;
};

// Adds Attach and Detach of elasticdl.v1.Master. Detach needs the job's token. Attach needs a
// caller of the master's user on this machine, and with --token_file also the token. `job` and the
// backend outlive the calls.
void AddAttachService(const std::string& token, const job::JobSpec& job,
                      const AttachedWorkers& workers, Methods& methods);

}  // namespace edl::master
