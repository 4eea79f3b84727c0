#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <poll.h>

#include "cli/job_location.h"
#include "cli/verbs.h"
#include "job/names.h"

namespace edl::cli {
namespace {

constexpr int64_t kPieceBytes = 256 << 10;
constexpr int kFollowMillis = 100;
constexpr Duration kCheckInterval = std::chrono::seconds(1);

// "worker-0" for the log of a replica, "master" for the master's.
std::string Label(const JobFolder& folder, const std::string& name) {
  return job::ReplicaLabel(folder.name(), name).value_or(name);
}

Result<std::string> Choose(const JobFolder& folder, const std::string& wanted) {
  const std::vector<std::string> names = folder.LogNames();
  std::vector<std::string> labels;
  for (const std::string& name : names) {
    if (name == wanted || Label(folder, name) == wanted) return name;
    labels.push_back(Label(folder, name));
  }
  if (labels.empty()) return NotFound("job {} has no logs yet", folder.name());
  return NotFound("job {} has no log of {}; it has logs of {}", folder.name(), wanted,
                  fmt::join(labels, ", "));
}

// The replica that was launched in the slot of `name` later; empty: none.
std::string SuccessorOf(const job::JobView& view, const std::string& name) {
  const auto is = [&](const job::ReplicaView& replica) { return replica.name == name; };
  const auto own = std::find_if(view.replicas.begin(), view.replicas.end(), is);
  if (own == view.replicas.end()) return "";
  const job::ReplicaView* next = nullptr;
  for (const job::ReplicaView& replica : view.replicas) {
    const bool later =
        replica.role == own->role && replica.index == own->index && replica.id > own->id;
    if (later && (next == nullptr || replica.id < next->id)) next = &replica;
  }
  return next == nullptr ? "" : next->name;
}

// Prints logs as they grow. With labels, each line starts with the replica's name.
enum class Labels { kOff, kOn };

class Printer {
 public:
  Printer(Platform& platform, const JobFolder& folder) : platform_(platform), folder_(folder) {}

  // Prints what was appended since the last call. Returns false if nothing was.
  bool Print(const std::string& name, Labels labels) {
    bool any = false;
    while (true) {
      Progress& progress = progress_[name];
      const auto piece =
          platform_.local.read_log(folder_.logs(), name, progress.offset, kPieceBytes);
      if (!piece.ok() || piece->text.empty()) return any;
      any = true;
      progress.offset = piece->next_offset;
      if (labels == Labels::kOn) {
        progress.rest += piece->text;
        PrintLines(name, progress.rest);
      } else {
        platform_.out << piece->text;
      }
      platform_.out.flush();
    }
  }

  // Prints the last lines of logs that do not end with a newline.
  void Finish() {
    for (auto& [name, progress] : progress_) {
      if (!progress.rest.empty()) PrintLines(name, progress.rest += '\n');
    }
    platform_.out.flush();
  }

 private:
  struct Progress {
    int64_t offset = 0;
    std::string rest;  // the beginning of a line that has no newline yet
  };

  void PrintLines(const std::string& name, std::string& text) {
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      platform_.out << Label(folder_, name) << " | " << text.substr(begin, end + 1 - begin);
      begin = end + 1;
    }
    text.erase(0, begin);
  }

  Platform& platform_;
  const JobFolder& folder_;
  std::map<std::string, Progress> progress_;
};

// The pod with this name or label ("worker-0", "master").
Result<std::string> ChoosePod(const JobLocation& location, const std::string& wanted) {
  EDL_ASSIGN_OR_RETURN(const std::vector<std::string> pods, location.cluster->Pods(location.name));
  std::vector<std::string> labels;
  for (const std::string& pod : pods) {
    const std::string label = job::ReplicaLabel(location.name, pod).value_or("master");
    if (pod == wanted || label == wanted) return pod;
    labels.push_back(label);
  }
  if (labels.empty())
    return NotFound("job {} has no pods, so its logs are no longer available", location.name);
  return NotFound("job {} has no replica {}; it has {}", location.name, wanted,
                  fmt::join(labels, ", "));
}

int ShowClusterLogs(Platform& platform, const JobLocation& location, const FlagValues& flags) {
  const bool one = flags.arguments().size() > 1;
  if (!one && flags.Bool("follow")) {
    return Fail(platform,
                InvalidArgument("-f needs a replica: elasticdl logs {} REPLICA -f", location.name));
  }
  std::vector<std::string> pods;
  if (one) {
    const Result<std::string> pod = ChoosePod(location, flags.arguments().at(1));
    if (!pod.ok()) return Fail(platform, pod.status());
    pods = {*pod};
  } else {
    Result<std::vector<std::string>> all = location.cluster->Pods(location.name);
    if (!all.ok()) return Fail(platform, all.status());
    pods = *std::move(all);
  }
  const auto mode = flags.Bool("follow") ? backend::LogMode::kFollow : backend::LogMode::kUntilNow;
  for (const std::string& pod : pods) {
    if (!one) platform.out << "==> " << pod << "\n";
    const Status read = location.cluster->ReadLog(pod, mode, [&](std::string_view text) {
      platform.out << text;
      platform.out.flush();
      return true;
    });
    if (!read.ok() && one) return Fail(platform, read);
    if (!read.ok()) platform.out << read.message() << "\n";
  }
  platform.out.flush();
  return kExitOk;
}

}  // namespace

int ShowLogs(Platform& platform, const FlagValues& flags) {
  const Result<JobLocation> location = FindJob(platform, flags, flags.arguments().front());
  if (!location.ok()) return Fail(platform, location.status());
  if (!location->folder.has_value()) return ShowClusterLogs(platform, *location, flags);
  const std::optional<JobFolder>& folder = location->folder;
  const bool labelled = flags.arguments().size() < 2;
  std::string chosen;
  if (!labelled) {
    const Result<std::string> name = Choose(*folder, flags.arguments().at(1));
    if (!name.ok()) return Fail(platform, name.status());
    chosen = *name;
  }
  Printer printer(platform, *folder);
  Time next_check = platform.clock.Now();
  while (true) {
    // Checked before the logs are read, so that the last output is not missed.
    const Result<bool> running = platform.local.is_running(folder->path());
    bool any = false;
    if (labelled) {
      for (const std::string& name : folder->LogNames()) {
        if (name != "master" && name != "agent") any = printer.Print(name, Labels::kOn) || any;
      }
    } else {
      any = printer.Print(chosen, Labels::kOff);
    }
    if (!flags.Bool("follow") || !running.ok() || !*running || !platform.out.good()) break;
    if (any) continue;
    // A replica that wrote nothing new may have been replaced.
    if (!labelled && platform.clock.Now() >= next_check) {
      next_check = platform.clock.Now() + kCheckInterval;
      const Result<JobSnapshot> snapshot = TakeSnapshot(platform, *folder);
      const std::string next = snapshot.ok() ? SuccessorOf(snapshot->view, chosen) : "";
      if (!next.empty()) {
        printer.Print(chosen, Labels::kOff);  // what it wrote since the last call
        platform.out << fmt::format("==> {} replaces {} <==\n", Label(*folder, next),
                                    Label(*folder, chosen));
        chosen = next;
        continue;
      }
    }
    poll(nullptr, 0, kFollowMillis);
  }
  printer.Finish();
  return kExitOk;
}

}  // namespace edl::cli
