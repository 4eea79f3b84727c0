#pragma once

#include "tfjob_convert/edit.h"
#include "tfjob_convert/notes.h"

namespace edl::tfjob_convert {

// Warns of selectors in an object of any kind that use labels of old operators, which the pods of a
// v1 operator do not have.
void ReportOldLabels(const Json& object, Notes& notes);

}  // namespace edl::tfjob_convert
