#include "master/types.h"

namespace edl::master {

std::string_view NameOf(TaskType type) {
  switch (type) {
    case TaskType::kTraining:
      return "training";
    case TaskType::kEvaluation:
      return "evaluation";
    case TaskType::kPrediction:
      return "prediction";
  }
  return "training";
}

std::optional<TaskType> TaskTypeFromName(std::string_view name) {
  for (const TaskType type : {TaskType::kTraining, TaskType::kEvaluation, TaskType::kPrediction}) {
    if (NameOf(type) == name) return type;
  }
  return std::nullopt;
}

}  // namespace edl::master
