#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl::tfjob_convert {

// How a JSON document that was changed is written. YAML stays YAML.
enum class JsonOutput { kYaml, kJson };

// A converted file.
struct Conversion {
  std::string text;
  // One line for each change and warning, in the order of the file:
  // "document 2, TFJob github: apiVersion kubeflow.org/v1alpha2 -> kubeflow.org/v1".
  std::vector<std::string> notes;
  int jobs = 0;          // TFJobs in the file
  int changed_jobs = 0;  // TFJobs that were changed
  bool lost_comments = false;
};

// Rewrites the TFJobs in a YAML or JSON file, also those in lists, to kubeflow.org/v1. Documents
// without a change keep their text; others are written anew, without comments. The conversion of a
// converted file changes nothing.
//
// InvalidArgument: `text` is not YAML, or a TFJob in it cannot be converted. The message begins
// with "document N, line M", except for a file that is too large.
Result<Conversion> Convert(std::string_view text, JsonOutput json_output);

}  // namespace edl::tfjob_convert
