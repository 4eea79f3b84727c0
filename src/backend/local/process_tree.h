#pragma once

#include <set>
#include <vector>

#include <sys/types.h>

namespace edl::backend::local {

// The processes below `root` in /proc, zombies left out; none of `spared` nor what is below them.
std::vector<pid_t> DescendantsOf(pid_t root, const std::set<pid_t>& spared = {});

// Ends and reaps every process below this one but `spared`, those included that fork meanwhile or
// have left their session. REQUIRES: this process is a subreaper (or PID 1), so that orphans below
// it become its children.
void EndDescendants(const std::set<pid_t>& spared = {});

}  // namespace edl::backend::local
