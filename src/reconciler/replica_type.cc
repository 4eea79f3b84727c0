#include "reconciler/replica_type.h"

#include <algorithm>
#include <cctype>

namespace edl::reconciler {
namespace {

std::string Lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return out;
}

}  // namespace

std::string_view NameOf(ReplicaType type) {
  switch (type) {
    case ReplicaType::kChief:
      return "Chief";
    case ReplicaType::kEvaluator:
      return "Evaluator";
    case ReplicaType::kMaster:
      return "Master";
    case ReplicaType::kPs:
      return "PS";
    case ReplicaType::kWorker:
      return "Worker";
  }
  return "";
}

std::string LowerNameOf(ReplicaType type) { return Lowered(NameOf(type)); }

std::optional<ReplicaType> ParseReplicaType(std::string_view text) {
  const std::string wanted = Lowered(text);
  for (const ReplicaType type : kReplicaTypes) {
    if (LowerNameOf(type) == wanted) return type;
  }
  return std::nullopt;
}

}  // namespace edl::reconciler
