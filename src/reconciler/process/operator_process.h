#pragma once

namespace edl::reconciler {

// The command `elasticdl operator`: runs TFJobs until a signal ends it. `argv` starts after the
// word `operator`. Returns the exit code.
int RunOperator(int argc, char** argv);

}  // namespace edl::reconciler
