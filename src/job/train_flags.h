#pragma once

#include <string_view>

#include "base/flags.h"

namespace edl::job {

// Values of FlagSpec::scope.
inline constexpr char kKubernetesScope[] = "kubernetes";
inline constexpr char kModelScope[] = "model_def";
inline constexpr char kObsoleteScope[] = "no effect";

// The flags of `elasticdl train`: all flags of the original, then ours. Parsing, help, completion,
// docs/flags.md, job files and the master's arguments are derived from this table.
const FlagTable& TrainFlags();

// Whether the flag has an effect with --ps_program=elasticdl, also without --model_def.
bool IsParameterServerFlag(std::string_view flag);

// TrainFlags(), and the flags with which the agent or the pod starts the master.
const FlagTable& MasterFlags();

}  // namespace edl::job
