#pragma once

namespace edl::apps {

// The verb `ps`: a parameter server, until it is told to end. `argv` begins behind the verb.
// Returns the exit code.
int RunPs(int argc, char** argv);

}  // namespace edl::apps
