#include "cli/summary.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/ranges.h>

#include "cli/format.h"
#include "cli/progress.h"

namespace edl::cli {
namespace {

Color ColorOf(const JobSnapshot& snapshot) {
  if (snapshot.liveness == Liveness::kInterrupted) return Color::kBad;
  if (snapshot.view.state == job::JobState::kSucceeded) return Color::kGood;
  return snapshot.view.state == job::JobState::kFailed ? Color::kBad : Color::kNone;
}

// "Job iris succeeded after 12 s."
std::string Headline(const JobSnapshot& snapshot, UseColor use_color) {
  const job::JobView& view = snapshot.view;
  std::string out =
      fmt::format("Job {} {}", view.name, Colored(snapshot.state(), ColorOf(snapshot), use_color));
  if (view.ran_seconds > 0) {
    out += " after " + Span(view.ran_seconds);
  } else if (view.started_at > 0 && view.ended_at >= view.started_at) {
    out += " after " + Span(view.ended_at - view.started_at);  // an older version wrote the view
  }
  if (!view.reason.empty() && view.state != job::JobState::kSucceeded) {
    out += ": " + EscapeControlChars(view.reason);
  } else if (snapshot.liveness == Liveness::kInterrupted && !snapshot.trouble.empty()) {
    out += ": " + EscapeControlChars(snapshot.trouble);
    return out + "\n";
  }
  out += "\n";
  if (!snapshot.trouble.empty()) out += fmt::format("  {}\n", EscapeControlChars(snapshot.trouble));
  return out;
}

void AddDataset(std::vector<std::vector<std::string>>& rows, const job::DatasetView& dataset) {
  std::string text = Count(dataset.records_done);
  if (dataset.records_total > 0) {
    text += fmt::format(" of {} ({} of {})", Count(dataset.records_total),
                        Plural(dataset.epochs, "epoch", "epochs"), Count(dataset.size));
  }
  if (!dataset.name.empty()) text += ", dataset " + EscapeControlChars(dataset.name);
  rows.push_back({dataset.IsTraining() ? "  records trained" : "  records", text});
}

// The counts that are shown only if they are not zero.
void AddShards(std::vector<std::vector<std::string>>& rows, const job::JobView& view) {
  int64_t repeated = 0;
  int64_t quarantined = 0;
  int64_t not_trained = 0;
  for (const job::DatasetView& dataset : view.datasets) {
    repeated += dataset.shards_repeated;
    quarantined += dataset.shards_quarantined;
    not_trained += dataset.records_not_trained;
  }
  rows.push_back({"  shards",
                  fmt::format("{} repeated, {} quarantined", Count(repeated), Count(quarantined))});
  if (not_trained > 0) rows.push_back({"  not trained", Plural(not_trained, "record", "records")});
}

std::string LastLines(const job::JobView& view) {
  if (view.last_lines.empty()) return "";
  std::string out = "  last lines of its log:\n";
  for (const std::string& line : view.last_lines) out += "    | " + EscapeControlChars(line) + "\n";
  return out;
}

// The command to run next.
std::string WayOn(const JobSnapshot& snapshot) {
  const std::string& name = snapshot.view.name;
  if (snapshot.liveness == Liveness::kInterrupted ||
      snapshot.view.state == job::JobState::kStopped) {
    return fmt::format("To resume it: elasticdl train --resume --job_name={}\n", name);
  }
  if (snapshot.view.state == job::JobState::kFailed) {
    return fmt::format(
        "See elasticdl logs {0}; to resume it: elasticdl train --resume "
        "--job_name={0}\n",
        name);
  }
  return "";
}

// "step 81 %, pull 7 %, other 12 %": where the worker that reported last spends its time. Empty: no
// worker has reported that.
std::string WorkerTime(const job::JobView& view) {
  constexpr std::string_view kPrefix = "time.";
  std::vector<std::pair<double, std::string>> shares;
  for (const auto& [name, value] : view.metrics) {
    if (!name.starts_with(kPrefix) || !(value >= 0 && value <= 1)) continue;
    shares.emplace_back(value, EscapeControlChars(name.substr(kPrefix.size())));
  }
  std::ranges::sort(shares, std::greater<>());
  std::vector<std::string> texts;
  texts.reserve(shares.size());
  for (const auto& [share, name] : shares) {
    texts.push_back(fmt::format("{} {:.0f} %", name, 100 * share));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<std::vector<std::string>> Figures(const job::JobView& view) {
  std::vector<std::vector<std::string>> rows;
  for (const job::DatasetView& dataset : view.datasets) AddDataset(rows, dataset);
  if (!view.success_rule.empty())
    rows.push_back({"  succeeded because", EscapeControlChars(view.success_rule)});
  rows.push_back(
      {"  relaunches", fmt::format("{} of replicas, {} of the master", Count(view.relaunches),
                                   Count(std::max<int64_t>(view.master_starts - 1, 0)))});
  AddShards(rows, view);
  if (!view.evaluation.empty())
    rows.push_back({"  last evaluation", EscapeControlChars(view.evaluation)});
  if (!view.checkpoint.empty()) rows.push_back({"  checkpoint", view.checkpoint});
  if (const std::string time = WorkerTime(view); !time.empty()) {
    rows.push_back({"  time of a worker", time});
  }
  for (const std::string& remark : view.remarks)
    rows.push_back({"  remark", EscapeControlChars(remark)});
  return rows;
}

// The last view may show running replicas, but no process of an interrupted job runs.
std::string StateOf(const JobSnapshot& snapshot, const job::ReplicaView& replica) {
  if (!job::HasEnded(replica.state) && snapshot.liveness == Liveness::kInterrupted)
    return "interrupted";
  return std::string(NameOf(replica.state));
}

std::string ReplicaTable(const JobSnapshot& snapshot) {
  const job::JobView& view = snapshot.view;
  if (view.replicas.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"REPLICA", "INDEX", "STATE", "PROCESS", "SHARDS", "REASON"}};
  if (snapshot.liveness == Liveness::kRunning && view.master_process_id > 0) {
    rows.push_back({"master", "-", "running", std::to_string(view.master_process_id), "-", ""});
  }
  for (const job::ReplicaView& replica : view.replicas) {
    rows.push_back({ShortName(view, replica.name), std::to_string(replica.index),
                    StateOf(snapshot, replica),
                    replica.process_id > 0 ? std::to_string(replica.process_id) : "-",
                    std::to_string(replica.leases), EscapeControlChars(replica.reason)});
  }
  std::string out = "\n" + Columns(rows);
  if (view.replicas_left_out > 0) {
    out += fmt::format("and {} more\n", Plural(view.replicas_left_out, "replica", "replicas"));
  }
  return out;
}

std::string ServerTable(const job::JobView& view) {
  if (view.servers.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"PS", "ROWS", "MEMORY", "EVICTED", "PULLED/S", "PUSHED/S", "REASON"}};
  for (const job::ServerView& server : view.servers) {
    rows.push_back({std::to_string(server.index), Count(server.rows),
                    fmt::format("{:.1f} MiB", static_cast<double>(server.bytes) / (1 << 20)),
                    Count(server.evicted), Count(static_cast<int64_t>(server.rows_pulled_per_s)),
                    Count(static_cast<int64_t>(server.rows_pushed_per_s)),
                    EscapeControlChars(server.reason)});
  }
  return "\n" + Columns(rows);
}

}  // namespace

std::string Summary(const JobSnapshot& snapshot, UseColor use_color) {
  std::string out = Headline(snapshot, use_color);
  if (snapshot.liveness == Liveness::kInterrupted && !snapshot.trouble.empty()) {
    out += fmt::format("  why: {}\n", EscapeControlChars(snapshot.trouble));
  }
  if (snapshot.view.state == job::JobState::kFailed) out += LastLines(snapshot.view);
  out += Columns(Figures(snapshot.view));
  return out + WayOn(snapshot);
}

std::string HeaderText(const JobSnapshot& snapshot, double now, UseColor use_color) {
  const job::JobView& view = snapshot.view;
  if (snapshot.liveness != Liveness::kRunning) {
    std::vector<std::vector<std::string>> rows;
    for (const job::DatasetView& dataset : view.datasets) AddDataset(rows, dataset);
    return Headline(snapshot, use_color) + Columns(rows);
  }
  const double ran = view.ran_seconds > 0 ? view.ran_seconds : std::max(now - view.started_at, 0.0);
  std::string out = fmt::format("Job {} {} for {}\n", view.name, snapshot.state(),
                                Span(view.started_at > 0 ? ran : 0));
  if (!snapshot.trouble.empty()) {
    out += fmt::format("  {}\n", EscapeControlChars(snapshot.trouble));
    if (view.updated_at > 0 && now > view.updated_at) {
      out += fmt::format("  the following is {} old\n", Span(now - view.updated_at));
    }
  }
  if (!view.paused.empty()) out += fmt::format("  paused: {}\n", EscapeControlChars(view.paused));
  const double rate = ran > 1 ? static_cast<double>(RecordsOf(view).done) / ran : 0;
  return out + fmt::format("  {}\n", ProgressLine(view, rate));
}

std::string StatusText(const JobSnapshot& snapshot, double now, UseColor use_color) {
  const job::JobView& view = snapshot.view;
  const std::string tables = ReplicaTable(snapshot) + ServerTable(view);
  if (snapshot.liveness != Liveness::kRunning) return Summary(snapshot, use_color) + tables;
  return HeaderText(snapshot, now, use_color) + Columns(Figures(view)) + tables;
}

}  // namespace edl::cli
