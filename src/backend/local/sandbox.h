#pragma once

#include <vector>

#include <sys/types.h>

#include "backend/local/agent.h"
#include "base/file.h"
#include "base/status.h"
#include "job/volume.h"

namespace edl::backend::local {

// The namespaces to create for a new process.
struct Namespaces {
  bool user = false;   // lets an unprivileged user create the others
  bool pid = false;    // the process is PID 1: when it dies, the kernel kills all descendants
  bool mount = false;  // its mounts are invisible to other processes

  int clone_flags() const;
};

// The namespaces to try for a job, the best first; the last needs no privileges.
// `at_most` limits the isolation. Volumes need a mount namespace even without isolation.
std::vector<Namespaces> NamespacesToTry(Isolation at_most, const std::vector<job::Volume>& volumes);

struct Identity {
  uid_t user = 0;
  gid_t group = 0;
};

// Call it in a process that was just cloned with `namespaces`. Keeps the ids of the user, keeps
// mounts inside the namespace, and mounts the /proc of the new PID namespace. `identity` is that
// before the clone.
Status EnterNamespaces(const Namespaces& namespaces, Identity identity);

// Checks whether this machine can provide these volumes at all.
Status CheckVolumes(const std::vector<job::Volume>& volumes);

// Whether this process may mount.
enum class MountAccess { kNone, kOwnNamespace };

// Makes every volume visible at its mount path, for this process and its descendants. Creates
// missing mount points and leaves them. Without a mount namespace, a volume must already be at its
// path (for example as a symbolic link).
Status MountVolumes(const std::vector<job::Volume>& volumes, MountAccess access);

}  // namespace edl::backend::local
