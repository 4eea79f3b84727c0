#pragma once

namespace edl::ps {

// The command `elasticdl ps`: runs a parameter server until a signal ends it. `argv` starts after
// the word `ps`. Returns the exit code.
int RunPs(int argc, char** argv);

}  // namespace edl::ps
