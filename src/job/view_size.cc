#include "job/view_size.h"

#include <algorithm>
#include <utility>

namespace edl::job {
namespace {

constexpr size_t kLongestText = 300;
constexpr size_t kMostTexts = 30;
constexpr size_t kSmallestRow = 100;  // bytes of a replica in JSON
constexpr size_t kMostDatasets = 200;

void Cut(std::string& text, size_t most = kLongestText) {
  if (text.size() <= most) return;
  text.resize(most);
  text += "...";
}

void CutTexts(JobView& view) {
  Cut(view.reason, 4 * kLongestText);
  Cut(view.evaluation);
  for (std::vector<std::string>* texts : {&view.last_lines, &view.remarks}) {
    if (texts->size() > kMostTexts) texts->resize(kMostTexts);
    for (std::string& text : *texts) Cut(text);
  }
  // The last evaluations are the interesting ones.
  if (view.evaluations.size() > kMostTexts) {
    view.evaluations.erase(view.evaluations.begin(),
                           view.evaluations.end() - static_cast<ptrdiff_t>(kMostTexts));
  }
  for (EvaluationView& evaluation : view.evaluations) Cut(evaluation.text);
  for (ReplicaView& replica : view.replicas) Cut(replica.reason);
  if (view.datasets.size() > kMostDatasets) view.datasets.resize(kMostDatasets);
}

// The rank of a replica: lower ranks are more interesting to a user, and are left out later.
int RankOf(const ReplicaView& replica) {
  if (replica.state == ReplicaState::kPending) return replica.role == "worker" ? 1 : 0;
  if (replica.state == ReplicaState::kRunning) return replica.role == "worker" ? 2 : 0;
  return 3;
}

}  // namespace

std::string FitJson(JobView view, size_t most_bytes) {
  const size_t most_rows = most_bytes / kSmallestRow;
  std::string text;
  if (view.replicas.size() <= most_rows) {
    text = view.ToJson(-1);
    if (text.size() <= most_bytes) return text;
  }
  CutTexts(view);
  std::vector<ReplicaView> replicas = std::exchange(view.replicas, {});
  std::ranges::stable_sort(replicas, [](const ReplicaView& a, const ReplicaView& b) {
    if (RankOf(a) != RankOf(b)) return RankOf(a) < RankOf(b);
    return RankOf(a) == 3 && a.id > b.id;  // the newest of those that ended
  });
  const auto left_out_before = view.replicas_left_out;
  // Rows have similar sizes, so each step leaves out half of the estimated excess.
  size_t count = std::min(replicas.size(), most_rows);
  while (true) {
    view.replicas.assign(replicas.begin(), replicas.begin() + static_cast<ptrdiff_t>(count));
    view.replicas_left_out = left_out_before + static_cast<int64_t>(replicas.size() - count);
    text = view.ToJson(-1);
    if (text.size() <= most_bytes || count == 0) return text;
    count = count * most_bytes / text.size() * 9 / 10;
  }
}

}  // namespace edl::job
