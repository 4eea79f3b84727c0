#pragma once

#include <set>
#include <vector>

#include <sys/types.h>

namespace edl::backend::local {

// The descendants of `root` in /proc, except zombies and the subtrees of `spared`.
std::vector<pid_t> DescendantsOf(pid_t root, const std::set<pid_t>& spared = {});

// Kills and reaps every descendant of this process except `spared`, including those that fork in
// the meantime or have left their session. REQUIRES: this process is a subreaper (or PID 1), so
// that orphaned descendants become its children.
void EndDescendants(const std::set<pid_t>& spared = {});

}  // namespace edl::backend::local
