#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/flags.h"
#include "cli/platform.h"

namespace edl::cli {

// A subcommand of elasticdl.
struct Verb {
  std::string name;       // one word or two: "zoo init"
  std::string arguments;  // as help shows them: "JOB [REPLICA]"
  std::string summary;
  const FlagTable* flags = nullptr;
  size_t at_least = 0;  // positional arguments
  size_t at_most = 0;
  std::function<int(Platform&, const FlagValues&)> run;
  bool takes_job = false;               // shell completion offers job names
  std::vector<std::string> words = {};  // shell completion offers these words
  std::string examples = {};            // lines that help shows
};

// All verbs in the order in which help lists them.
const std::vector<Verb>& Verbs();

// The verb that `words` begin with. InvalidArgument: unknown verb; the message names similar ones.
Result<const Verb*> FindVerb(std::span<const std::string> words);

// Runs the verb in `arguments` (without the program's name) and returns the exit code.
int Main(Platform& platform, std::span<const std::string> arguments);

// The verbs. Each is implemented in a file of its own.
int Train(Platform& platform, const FlagValues& flags);
int Evaluate(Platform& platform, const FlagValues& flags);
int Predict(Platform& platform, const FlagValues& flags);
int Check(Platform& platform, const FlagValues& flags);
int ShowStatus(Platform& platform, const FlagValues& flags);
int ShowReport(Platform& platform, const FlagValues& flags);
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
int DataGen(Platform& platform, const FlagValues& flags);
int ConvertTfJobs(Platform& platform, const FlagValues& flags);
int ShowVersion(Platform& platform, const FlagValues& flags);
int ShowCompletion(Platform& platform, const FlagValues& flags);
int ShowHelp(Platform& platform, const FlagValues& flags);

// The flags of `check`: those of `train`, and --output.
const FlagTable& CheckFlags();
const FlagTable& ZooInitFlags();
const FlagTable& ZooBuildFlags();
const FlagTable& ZooPushFlags();
const FlagTable& DataGenFlags();
const FlagTable& TfJobConvertFlags();

// The datasets that `data gen` can generate: those of elasticdl/data_gen/__main__.py.
const std::vector<std::string>& DatasetNames();

// The text of `elasticdl help`: all verbs, or only those whose name begins with `first_word`.
std::string ProgramHelp(const std::string& first_word = "");
// The text of `elasticdl help VERB`.
std::string VerbHelp(const Verb& verb);
// The content of docs/flags.md.
std::string FlagsPage();

}  // namespace edl::cli
