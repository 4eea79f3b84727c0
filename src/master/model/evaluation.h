#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "job/job_view.h"

namespace edl::master {

// Reads the result of a merged evaluation, which a worker reports as JSON:
//   {"text": "{'accuracy': 0.97}", "metrics": {"accuracy": 0.97}}
// Metrics of a model with several outputs are nested once, {"output": {"auc": 0.8}}, and are named
// "output.auc". A metric that is null is NaN. The text is made fit for one line of a log.
//
// InvalidArgument: the result is not of this form, or has too many metrics.
Result<job::EvaluationView> ParseEvaluation(int64_t version, std::string_view result);

// "accuracy = 0.97, loss = 0.1 (version 470)".
std::string Describe(const job::EvaluationView& evaluation);

}  // namespace edl::master
