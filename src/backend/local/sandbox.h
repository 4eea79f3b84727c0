#pragma once

#include <vector>

#include <sys/types.h>

#include "base/file.h"
#include "base/status.h"
#include "job/volume.h"

namespace edl::backend::local {

// Which namespaces a new process gets for itself.
struct Namespaces {
  bool user = false;   // what lets a user without privileges have the others
  bool pid = false;    // the process is PID 1: with it, the kernel ends all below it
  bool mount = false;  // its mounts are seen by nobody else

  int clone_flags() const;
};

// What to try for a job, the best first; the last needs no privilege at all.
std::vector<Namespaces> NamespacesToTry(bool may_isolate, bool has_volumes);

struct Identity {
  uid_t user = 0;
  gid_t group = 0;
};

// In a process just cloned with `namespaces`: keeps the user's ids as they were outside, keeps
// mounts from getting out, and mounts the /proc of the new PID namespace. `identity` is the one
// before the clone.
Status EnterNamespaces(const Namespaces& namespaces, Identity identity);

// Whether these volumes can be given on this machine at all, whoever asks.
Status CheckVolumes(const std::vector<job::Volume>& volumes);

// Makes every volume visible at its mount path, for this process and those below it. A mount point
// that is missing is created and left. Without a mount namespace only a volume that is already at
// its place (a symbolic link) can be given.
Status MountVolumes(const std::vector<job::Volume>& volumes, bool has_mount_namespace);

}  // namespace edl::backend::local
