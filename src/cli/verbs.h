#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/flags.h"
#include "cli/platform.h"

namespace edl::cli {

// One thing that people can tell elasticdl to do.
struct Verb {
  std::string name;       // of one word or two: "zoo init"
  std::string arguments;  // in help: "JOB [REPLICA]"
  std::string summary;
  const FlagTable* flags = nullptr;
  size_t at_least = 0;  // arguments that are no flags
  size_t at_most = 0;
  std::function<int(Platform&, const FlagValues&)> run;
  bool takes_job = false;               // completion offers jobs
  std::vector<std::string> words = {};  // completion offers these
};

// All of them, in the order of help.
const std::vector<Verb>& Verbs();

// The verb that `words` begin with; InvalidArgument: there is none, with the nearest ones.
Result<const Verb*> FindVerb(std::span<const std::string> words);

// Runs what `arguments` (without the program's name) say; returns the exit code.
int Main(Platform& platform, std::span<const std::string> arguments);

// The verbs, one function a file.
int Train(Platform& platform, const FlagValues& flags);
int Check(Platform& platform, const FlagValues& flags);
int ShowStatus(Platform& platform, const FlagValues& flags);
int ListJobs(Platform& platform, const FlagValues& flags);
int ShowLogs(Platform& platform, const FlagValues& flags);
int StopJob(Platform& platform, const FlagValues& flags);
int DeleteJob(Platform& platform, const FlagValues& flags);
int ScaleJob(Platform& platform, const FlagValues& flags);
int ShowEvents(Platform& platform, const FlagValues& flags);
int ShowLedger(Platform& platform, const FlagValues& flags);
int ZooInit(Platform& platform, const FlagValues& flags);
int ZooBuild(Platform& platform, const FlagValues& flags);
int ZooPush(Platform& platform, const FlagValues& flags);
int ShowVersion(Platform& platform, const FlagValues& flags);
int ShowCompletion(Platform& platform, const FlagValues& flags);
int ShowHelp(Platform& platform, const FlagValues& flags);

// The flags of `check`: those of `train`, and how to print.
const FlagTable& CheckFlags();
const FlagTable& ZooInitFlags();
const FlagTable& ZooBuildFlags();
const FlagTable& ZooPushFlags();

// What ShowHelp prints, for the whole program (or those of its verbs that begin with this word) and
// for one verb; and docs/flags.md.
std::string ProgramHelp(const std::string& first_word = "");
std::string VerbHelp(const Verb& verb);
std::string FlagsPage();

}  // namespace edl::cli
