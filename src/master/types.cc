#include "master/types.h"

namespace edl::master {

std::string_view NameOf(TaskType type) {
  switch (type) {
    case TaskType::kTraining:
      return "training";
    case TaskType::kEvaluation:
      return "evaluation";
    case TaskType::kEvaluationMerge:
      return "evaluation_merge";
    case TaskType::kPrediction:
      return "prediction";
    case TaskType::kExport:
      return "export";
  }
  return "training";
}

std::optional<TaskType> TaskTypeFromName(std::string_view name) {
  for (const TaskType type :
       {TaskType::kTraining, TaskType::kEvaluation, TaskType::kEvaluationMerge,
        TaskType::kPrediction, TaskType::kExport}) {
    if (NameOf(type) == name) return type;
  }
  return std::nullopt;
}

}  // namespace edl::master
