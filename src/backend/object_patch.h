#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace edl::backend {

// A change of one Kubernetes object, to be applied to similar objects: a JSON merge patch (RFC
// 7386) in which four lists are treated as objects with the name of each element as its key:
// containers, env and volumes by name, volumeMounts by mountPath. The container that is named after
// its pod has the key "". A patch that adds a variable or a mount therefore keeps those of each
// replica. Any other list is replaced as a whole.
//
// New elements of these lists are appended, ordered by name.
nlohmann::json MakePatch(const nlohmann::json& from, const nlohmann::json& to);
void ApplyPatch(const nlohmann::json& patch, nlohmann::json& object);

// Checks that a job still works with patched pods (created like `pod`) or services: names, owners
// and the labels of this project must stay, and so must everything that the first container needs
// for its program. InvalidArgument: the message says what the patch removes.
Status CheckPodPatch(const nlohmann::json& patch, const nlohmann::json& pod);
Status CheckServicePatch(const nlohmann::json& patch);

}  // namespace edl::backend
