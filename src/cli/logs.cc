#include <map>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <poll.h>

#include "cli/job_store.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

constexpr int64_t kPieceBytes = 256 << 10;
constexpr int kFollowMillis = 100;

// "worker-0" for the log of a replica, "master" for the master's.
std::string Label(const JobFolder& folder, const std::string& name) {
  const std::string prefix = folder.name() + "-edljob-";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

Result<std::string> Choose(const JobFolder& folder, const std::string& wanted) {
  const std::vector<std::string> names = folder.LogNames();
  std::vector<std::string> labels;
  for (const std::string& name : names) {
    if (name == wanted || Label(folder, name) == wanted) return name;
    labels.push_back(Label(folder, name));
  }
  if (labels.empty()) return NotFound("job {} has no logs yet", folder.name());
  return NotFound("job {} has no replica {}; there are {}", folder.name(), wanted,
                  fmt::join(labels, ", "));
}

// Prints logs as they grow, each line with its replica's name where there are several.
class Printer {
 public:
  Printer(Platform& platform, const JobFolder& folder) : platform_(platform), folder_(folder) {}

  // Prints what is new. False: nothing was.
  bool Print(const std::string& name, bool labelled) {
    bool any = false;
    while (true) {
      Progress& progress = progress_[name];
      const auto piece =
          platform_.local.read_log(folder_.logs(), name, progress.offset, kPieceBytes);
      if (!piece.ok() || piece->text.empty()) return any;
      any = true;
      progress.offset = piece->next_offset;
      if (labelled) {
        progress.rest += piece->text;
        PrintLines(name, progress.rest);
      } else {
        platform_.out << piece->text;
      }
      platform_.out.flush();
    }
  }

  // Prints lines that have no end.
  void Finish() {
    for (auto& [name, progress] : progress_) {
      if (!progress.rest.empty()) PrintLines(name, progress.rest += '\n');
    }
    platform_.out.flush();
  }

 private:
  struct Progress {
    int64_t offset = 0;
    std::string rest;  // of a line whose end has not come yet
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

}  // namespace

int ShowLogs(Platform& platform, const FlagValues& flags) {
  const Result<JobFolder> folder = JobStore(platform.home).Find(flags.arguments().front());
  if (!folder.ok()) return Fail(platform, folder.status());
  const bool labelled = flags.arguments().size() < 2;
  std::string chosen;
  if (!labelled) {
    const Result<std::string> name = Choose(*folder, flags.arguments().at(1));
    if (!name.ok()) return Fail(platform, name.status());
    chosen = *name;
  }
  Printer printer(platform, *folder);
  while (true) {
    // Asked before the last look, so that nothing written at the end is missed.
    const Result<bool> running = platform.local.is_running(folder->path());
    bool any = false;
    if (labelled) {
      for (const std::string& name : folder->LogNames()) {
        if (name != "master" && name != "agent") any = printer.Print(name, true) || any;
      }
    } else {
      any = printer.Print(chosen, false);
    }
    if (!flags.Bool("follow") || !running.ok() || !*running) break;
    if (!any) poll(nullptr, 0, kFollowMillis);
  }
  printer.Finish();
  return kExitOk;
}

}  // namespace edl::cli
