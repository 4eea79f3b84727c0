#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace edl::backend {

// What was changed in one Kubernetes object, to be changed in others like it: a JSON merge patch
// (RFC 7386) of the object with four of its lists taken as objects, by what names an element:
// containers, env and volumes by name, volumeMounts by mountPath. The container that is named after
// its pod has the name "" there. So one more variable or mount leaves alone what each replica has
// of its own. Any other list is replaced as a whole.
//
// What is added to one of those lists comes after what was there, in the order of the names.
nlohmann::json MakePatch(const nlohmann::json& from, const nlohmann::json& to);
void ApplyPatch(const nlohmann::json& patch, nlohmann::json& object);

// Whether a job still works whose pods, made as `pod`, or whose services are patched so: names,
// owners and labels of ours stay, and so does all that the first container has for its program.
// InvalidArgument: a clause that says what was taken away.
Status CheckPodPatch(const nlohmann::json& patch, const nlohmann::json& pod);
Status CheckServicePatch(const nlohmann::json& patch);

}  // namespace edl::backend
