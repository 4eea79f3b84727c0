#pragma once

namespace edl::ps {

// The verb `ps`: runs a parameter server until a signal ends it. `argv` begins behind the verb.
// Returns the exit code.
int RunPs(int argc, char** argv);

}  // namespace edl::ps
