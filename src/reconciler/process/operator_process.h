#pragma once

namespace edl::reconciler {

// The command `elasticdl operator`: runs TFJobs until a signal ends it. `argv` starts after the
// word `operator`. Returns the exit code: 0 after a signal, 1 if it cannot start, 2 for wrong
// flags. The process exits with 1 when it loses its lease.
int RunOperator(int argc, char** argv);

}  // namespace edl::reconciler
