#pragma once

#include "tfjob_convert/edit.h"
#include "tfjob_convert/notes.h"

namespace edl::tfjob_convert {

// Whether the object is a TFJob, or a list of TFJobs, of any version.
bool IsTfJob(const Json& object);
bool IsTfJobList(const Json& object);

// Sets apiVersion to kubeflow.org/v1 and returns the version that it was: "v1alpha2".
// InvalidArgument: there is no such version. REQUIRES: IsTfJob() or IsTfJobList().
Result<std::string> SetVersion(Json& object, Notes& notes);

// Rewrites a TFJob to kubeflow.org/v1. `notes` says what changed. InvalidArgument: the TFJob cannot
// be converted; `job` is then undefined. REQUIRES: IsTfJob().
Status RewriteTfJob(Json& job, Notes& notes);

}  // namespace edl::tfjob_convert
