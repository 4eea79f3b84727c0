#include "cli/progress.h"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "cli/format.h"
#include "job/names.h"
#include "job/role.h"

namespace edl::cli {
namespace {

using job::ReplicaState;

constexpr Duration kRateWindow = std::chrono::seconds(30);

std::string RolePlural(int64_t count, const std::string& role) {
  return Plural(count, role, role == "ps" ? "ps" : role + "s");
}

// "2 workers, 1 ps": the replicas in `state`; empty: none.
std::string RolesIn(const job::JobView& view, ReplicaState state) {
  std::map<std::string, int64_t> counts;
  for (const job::ReplicaView& replica : view.replicas) {
    if (replica.state == state) ++counts[replica.role];
  }
  std::vector<std::string> parts;
  for (const job::Role role : job::kReplicaRoles) {
    const auto count = counts.find(std::string(NameOf(role)));
    if (count != counts.end()) parts.push_back(RolePlural(count->second, count->first));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string ReplicaChange(const job::JobView& view, const job::ReplicaView& replica) {
  const std::string name = ShortName(view, replica.name);
  const std::string reason =
      replica.reason.empty() ? "" : ": " + EscapeControlChars(replica.reason);
  switch (replica.state) {
    case ReplicaState::kPending:
      return "";  // usually short; the progress line counts pending replicas
    case ReplicaState::kRunning: {
      const std::string process =
          replica.process_id > 0 ? fmt::format(" (process {})", replica.process_id) : "";
      return fmt::format("{} runs as {} {}{}", name, replica.role, replica.index, process);
    }
    default:
      return fmt::format("{} {}{}", name, NameOf(replica.state), reason);
  }
}

const job::ReplicaView* Find(const job::JobView& view, const std::string& name) {
  for (const job::ReplicaView& replica : view.replicas) {
    if (replica.name == name) return &replica;
  }
  return nullptr;
}

}  // namespace

void RateMeter::Add(Time now, int64_t records_done) {
  // The number falls when a dataset is reset or restored; then the measurement starts again.
  if (!samples_.empty() && records_done < samples_.back().records) samples_.clear();
  samples_.push_back({now, records_done});
  while (samples_.size() > 2 && now - samples_[1].time >= kRateWindow) samples_.pop_front();
}

double RateMeter::PerSecond() const {
  if (samples_.size() < 2) return 0;
  const double seconds =
      std::chrono::duration<double>(samples_.back().time - samples_.front().time).count();
  if (seconds < 0.5) return 0;
  return static_cast<double>(samples_.back().records - samples_.front().records) / seconds;
}

std::string ReplicasByState(const job::JobView& view) {
  std::vector<std::string> parts;
  const auto add = [&](ReplicaState state, std::string_view verb) {
    const std::string roles = RolesIn(view, state);
    if (!roles.empty()) parts.push_back(fmt::format("{} {}", roles, verb));
  };
  add(ReplicaState::kRunning, "running");
  add(ReplicaState::kPending, "waiting");
  add(ReplicaState::kSucceeded, "done");
  if (view.replicas_left_out > 0) {
    parts.push_back(
        fmt::format("{} not listed", Plural(view.replicas_left_out, "replica", "replicas")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string ProgressLine(const job::JobView& view, double records_per_second, size_t columns) {
  // In the order of the line; `last_to_go` is the order in which parts are left out.
  struct Part {
    std::string text;
    std::string shorter;  // replaces `text` when that is left out; may be empty
    int last_to_go;
  };
  std::vector<Part> parts = {{std::string(NameOf(view.state)), "", 9}};
  const Records records = RecordsOf(view);
  if (records.epoch > 0) {
    const std::string of = records.epochs > 0 ? fmt::format("/{}", records.epochs) : "";
    parts.push_back({fmt::format("epoch {}{}", records.epoch, of), "", 3});
  }
  if (records.total > 0) {
    const auto percent = static_cast<int64_t>(100.0 * static_cast<double>(records.done) /
                                              static_cast<double>(records.total));
    parts.push_back(
        {fmt::format("{}/{} records ({} %)", Count(records.done), Count(records.total), percent),
         fmt::format("{} %", percent), 4});
  } else if (records.epoch > 0) {
    parts.push_back({fmt::format("{} records", Count(records.done)), "", 8});
  }
  if (records_per_second > 0) {
    parts.push_back({fmt::format("{}/s", Count(static_cast<int64_t>(records_per_second))), "", 2});
    if (records.total > records.done) {
      const auto left = static_cast<double>(records.total - records.done);
      parts.push_back({Span(left / records_per_second) + " left", "", 7});
    }
  }
  if (const auto loss = view.metrics.find("loss"); loss != view.metrics.end()) {
    parts.push_back({fmt::format("loss {:.4g}", loss->second), "", 6});
  }
  const std::string replicas = ReplicasByState(view);
  if (!replicas.empty()) parts.push_back({replicas, "", 1});
  const auto line = [&] {
    std::vector<std::string> texts;
    texts.reserve(parts.size());
    for (const Part& part : parts) texts.push_back(part.text);
    return fmt::format("{}", fmt::join(texts, " | "));
  };
  for (int going = 1; going < 9 && Width(line()) > columns; ++going) {
    for (Part& part : parts) {
      if (part.last_to_go == going) part.text = part.shorter;
    }
    std::erase_if(parts, [](const Part& part) { return part.text.empty(); });
  }
  return line();
}

std::string ShortName(const job::JobView& view, const std::string& replica) {
  return job::ReplicaLabel(view.name, replica).value_or(replica);
}

std::vector<std::string> Changes(const job::JobView& before, const job::JobView& after) {
  std::vector<std::string> lines;
  if (after.master_starts > before.master_starts && before.master_starts > 0) {
    lines.push_back(fmt::format("master restarted ({} times so far)", after.master_starts - 1));
  }
  if (before.state != after.state && !IsFinal(after.state)) {
    lines.push_back(fmt::format("job {} {}", after.name, NameOf(after.state)));
  }
  for (const job::ReplicaView& replica : after.replicas) {
    const job::ReplicaView* earlier = Find(before, replica.name);
    if (earlier != nullptr && earlier->state == replica.state) continue;
    std::string line = ReplicaChange(after, replica);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  if (before.evaluation != after.evaluation && !after.evaluation.empty()) {
    lines.push_back("evaluation: " + EscapeControlChars(after.evaluation));
  }
  return lines;
}

}  // namespace edl::cli
