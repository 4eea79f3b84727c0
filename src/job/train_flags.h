#pragma once

#include <string_view>

#include "base/flags.h"

namespace edl::job {

// FlagSpec::scope of flags that have an effect only there.
inline constexpr char kKubernetesScope[] = "kubernetes";
inline constexpr char kModelScope[] = "model_def";
inline constexpr char kObsoleteScope[] = "no effect";

// The flags of `elasticdl train`: all of the original's command line (its merged and its published
// line), then ours. The one table behind parsing, help, completion, docs/flags.md, job files and
// the master's arguments.
const FlagTable& TrainFlags();

// Whether parameter servers of ours heed the flag, with a model or without.
bool IsOfServers(std::string_view flag);

// The same, and what the master gets from whoever starts it.
const FlagTable& MasterFlags();

}  // namespace edl::job
