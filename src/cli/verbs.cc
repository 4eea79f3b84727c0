#include "cli/verbs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/ranges.h>

#include "cli/job_location.h"
#include "job/train_flags.h"

namespace edl::cli {
namespace {

FlagSpec OutputFlag() {
  return {.name = "output",
          .default_value = "text",
          .help = "The output format: text, or json for scripts.",
          .choices = {"text", "json"}};
}

const FlagTable& NoFlags() {
  static const FlagTable table(std::vector<FlagSpec>{});
  return table;
}

const FlagTable& OutputFlags() {
  static const FlagTable table({OutputFlag()});
  return table;
}

// The flags of a verb that takes a job: its own, --backend and --namespace.
std::vector<FlagSpec> WithPlace(std::vector<FlagSpec> own) {
  for (FlagSpec& spec : LocationFlags()) own.push_back(std::move(spec));
  return own;
}

const FlagTable& ListFlags() {
  static const FlagTable table(WithPlace({OutputFlag()}));
  return table;
}

const FlagTable& StatusFlags() {
  static const FlagTable table(WithPlace({OutputFlag(),
                                          {.name = "follow",
                                           .type = FlagType::kSwitch,
                                           .default_value = "false",
                                           .help = "Show progress until the job has ended.",
                                           .letter = 'f'}}));
  return table;
}

const FlagTable& ReportFlags() {
  static const FlagTable table({OutputFlag(),
                                {.name = "series",
                                 .help = "The series to show, for example "
                                         "records_per_s,program.loss; empty: all of them.",
                                 .value_name = "NAME,..."}});
  return table;
}

const FlagTable& LogsFlags() {
  static const FlagTable table(WithPlace({{.name = "follow",
                                           .type = FlagType::kSwitch,
                                           .default_value = "false",
                                           .help = "Keep printing until the job has ended.",
                                           .letter = 'f'}}));
  return table;
}

const FlagTable& ScaleFlags() {
  static const FlagTable table(WithPlace({{.name = "num_workers",
                                           .type = FlagType::kInt,
                                           .default_value = "-1",
                                           .help = "The new number of workers.",
                                           .value_name = "N",
                                           .at_least = 0,
                                           .at_most = 100'000},
                                          OutputFlag()}));
  return table;
}

const FlagTable& HelpFlags() {
  static const FlagTable table({{.name = "markdown",
                                 .type = FlagType::kSwitch,
                                 .default_value = "false",
                                 .help = "Print docs/flags.md, the page of all flags."}});
  return table;
}

const std::vector<std::string> kVersionVerb = {"version"};

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const Verb& verb : Verbs()) names.push_back(verb.name);
  return names;
}

bool HasTwoWords(const Verb& verb) { return verb.name.find(' ') != std::string::npos; }

// The names of two words that begin with `word`.
std::vector<std::string> VerbsUnder(const std::string& word) {
  std::vector<std::string> names = VerbNames();
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(word + " "); });
  return names;
}

Status UnknownVerb(std::span<const std::string> words) {
  const std::string& word = words.front();
  const std::vector<std::string> under = VerbsUnder(word);
  if (!under.empty()) {
    const std::string second = words.size() > 1 ? words[1] : "";
    if (second.empty() || second.starts_with('-')) {
      return InvalidArgument("'{}' needs a second word: one of {}", word, fmt::join(under, ", "));
    }
    return InvalidArgument("there is no verb '{} {}'; did you mean {}?", word, second,
                           fmt::join(under, ", "));
  }
  if (word.starts_with("--")) {
    return InvalidArgument("'{}': flags come after the verb: elasticdl train {}", word, word);
  }
  std::vector<std::string> near = NearestNames(word, VerbNames());
  if (near.empty()) near = VerbNames();
  return InvalidArgument("there is no verb '{}'; did you mean {}?", word, fmt::join(near, ", "));
}

bool AsksForHelp(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return false;
    if (argument == "--help" || argument == "-h") return true;
  }
  return false;
}

// Old scripts were written for Python's argparse, which takes the last value without a warning.
void WarnOfRepeatedFlags(Platform& platform, const FlagValues& flags) {
  for (const std::string& name : flags.replaced()) {
    platform.err << fmt::format(
        "elasticdl: warning: --{0} is given more than once; only the last value, --{0}={1}, is "
        "used\n",
        name, flags.ShownText(name));
  }
}

int RunVerb(Platform& platform, const Verb& verb, std::span<const std::string> arguments) {
  if (AsksForHelp(arguments)) {
    platform.out << VerbHelp(verb);
    platform.out.flush();
    return kExitOk;
  }
  const Result<FlagValues> flags = ParseFlags(*verb.flags, arguments);
  if (!flags.ok()) return Fail(platform, flags.status());
  const std::vector<std::string>& given = flags->arguments();
  const bool runs_job = verb.flags == &job::TrainFlags();
  if (runs_job && !given.empty()) {
    return Fail(platform, InvalidArgument("unexpected argument '{}'; quote the program to run: "
                                          "--job_command='{}'",
                                          given.front(), fmt::join(given, " ")));
  }
  if (given.size() > verb.at_most) {
    return Fail(platform, InvalidArgument("unexpected argument '{}'; usage: elasticdl {} {}",
                                          given.at(verb.at_most), verb.name, verb.arguments));
  }
  if (given.size() < verb.at_least) {
    return Fail(platform, InvalidArgument("an argument is missing; usage: elasticdl {} {}",
                                          verb.name, verb.arguments));
  }
  WarnOfRepeatedFlags(platform, *flags);
  const int code = verb.run(platform, *flags);
  platform.out.flush();
  if (platform.out.good()) return code;
  platform.err << fmt::format("elasticdl: cannot write the output: {}\n", std::strerror(errno));
  platform.err.flush();
  // The exit code of `train` is the job's.
  return code == kExitOk && !runs_job ? kExitFailed : code;
}

}  // namespace

const std::vector<Verb>& Verbs() {
  static const std::vector<Verb> verbs = {
      {"train",
       "--job_name=NAME --model_def=MODEL|--job_command=COMMAND [flags]",
       "Train a Keras model, or run a training program.",
       &job::TrainFlags(),
       0,
       0,
       Train,
       false,
       {},
       "  elasticdl train --job_name=mnist --model_zoo=model_zoo \\\n"
       "    --model_def=mnist.mnist_functional_api.custom_model \\\n"
       "    --training_data=data/mnist/train --validation_data=data/mnist/test --output=model\n"
       "  elasticdl train --job_name=iris --job_command='python3 train.py' --num_workers=2\n"},
      {"evaluate",
       "--job_name=NAME --model_def=MODEL --validation_data=PATH --checkpoint_dir_for_init=PATH "
       "[flags]",
       "Evaluate a checkpoint of a Keras model.",
       &job::TrainFlags(),
       0,
       0,
       Evaluate,
       false,
       {},
       "  elasticdl evaluate --job_name=mnist-eval --model_zoo=model_zoo \\\n"
       "    --model_def=mnist.mnist_functional_api.custom_model \\\n"
       "    --validation_data=data/mnist/test "
       "--checkpoint_dir_for_init=checkpoints/version-100...\n"},
      {"predict",
       "--job_name=NAME --model_def=MODEL --prediction_data=PATH --checkpoint_dir_for_init=PATH "
       "[flags]",
       "Predict records with a checkpoint of a Keras model.",
       &job::TrainFlags(),
       0,
       0,
       Predict,
       false,
       {},
       "  elasticdl predict --job_name=mnist-predict --model_zoo=model_zoo \\\n"
       "    --model_def=mnist.mnist_functional_api.custom_model \\\n"
       "    --prediction_data=data/mnist/test "
       "--checkpoint_dir_for_init=checkpoints/version-100...\n"},
      {"check", "[flags of train]",
       "Check whether everything that a job needs is there, without starting it.", &CheckFlags(), 0,
       0, Check},
      {"status", "[JOB] [-f]", "Show the state of a job, or of all jobs.", &StatusFlags(), 0, 1,
       ShowStatus, true},
      {"report",
       "JOB [--series=NAME,...]",
       "Show the curves of a job: throughput, metrics, shards, replicas, parameters.",
       &ReportFlags(),
       1,
       1,
       ShowReport,
       true,
       {},
       "  elasticdl report mnist\n"
       "  elasticdl report mnist --series=records_per_s,program.loss --output=json\n"},
      {"list", "", "List all jobs.", &ListFlags(), 0, 0, ListJobs},
      {"logs", "JOB [REPLICA] [-f]",
       "Print the logs of replicas; REPLICA is for example worker-0, master or agent.",
       &LogsFlags(), 1, 2, ShowLogs, true},
      {"stop", "JOB", "Stop a running job.", &ListFlags(), 1, 1, StopJob, true},
      {"delete", "JOB", "Delete a job that has ended, with its logs.", &ListFlags(), 1, 1,
       DeleteJob, true},
      {"scale", "JOB --num_workers=N", "Change the number of workers of a running job.",
       &ScaleFlags(), 1, 1, ScaleJob, true},
      {"events", "JOB", "Print the cluster's events about a job's pods.", &ListFlags(), 1, 1,
       ShowEvents, true},
      {"ledger", "JOB", "Print the master's ledger as JSON.", &OutputFlags(), 1, 1, ShowLedger,
       true},
      {"zoo init", "[flags]", "Write a Dockerfile for the models in this folder.", &ZooInitFlags(),
       0, 0, ZooInit},
      {"zoo build", "--image=NAME [FOLDER]",
       "Build the image that a folder's Dockerfile describes.", &ZooBuildFlags(), 0, 1, ZooBuild},
      {"zoo push", "NAME", "Push an image to the registry in its name.", &ZooPushFlags(), 1, 1,
       ZooPush},
      {"data gen", "NAME OUT [flags]",
       "Generate a dataset of the model zoo in the folder OUT, with train and test parts.",
       &DataGenFlags(), 2, 2, DataGen, false, DatasetNames()},
      {"tfjob convert",
       "FILE [--in_place]",
       "Rewrite old TFJobs in a YAML or JSON file to kubeflow.org/v1, and say what changed.",
       &TfJobConvertFlags(),
       1,
       1,
       ConvertTfJobs,
       false,
       {},
       "  elasticdl tfjob convert tfjob.yaml > tfjob-v1.yaml\n"
       "  elasticdl tfjob convert tfjob.yaml --in_place\n"
       "  kubectl get tfjobs.v1beta2.kubeflow.org -o yaml | elasticdl tfjob convert -\n"},
      {"version", "", "Print the version.", &OutputFlags(), 0, 0, ShowVersion},
      {"completion",
       "bash|zsh",
       "Print a script for shell completion.",
       &NoFlags(),
       1,
       1,
       ShowCompletion,
       false,
       {"bash", "zsh"}},
      {"help", "[VERB]", "Show a verb's purpose and flags.", &HelpFlags(), 0, 2, ShowHelp},
  };
  return verbs;
}

Result<const Verb*> FindVerb(std::span<const std::string> words) {
  const std::string two = words.size() > 1 ? words[0] + " " + words[1] : "";
  for (const Verb& verb : Verbs()) {
    if (verb.name == words.front() || verb.name == two) return &verb;
  }
  return UnknownVerb(words);
}

int Fail(Platform& platform, const Status& status) {
  platform.out.flush();
  platform.err << "elasticdl: " << status.message() << "\n";
  platform.err.flush();
  return status.code() == Code::kInvalidArgument ? kExitUsage : kExitFailed;
}

int Main(Platform& platform, std::span<const std::string> arguments) {
  if (arguments.empty()) {
    platform.err << ProgramHelp();
    platform.err.flush();
    return kExitFailed;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h") {
    platform.out << ProgramHelp();
    platform.out.flush();
    return kExitOk;
  }
  if (name == "--version") return RunVerb(platform, **FindVerb(kVersionVerb), arguments.subspan(1));
  const Result<const Verb*> verb = FindVerb(arguments);
  if (!verb.ok()) {
    if (!VerbsUnder(name).empty() && AsksForHelp(arguments)) {
      platform.out << ProgramHelp(name);
      platform.out.flush();
      return kExitOk;
    }
    return Fail(platform, verb.status());
  }
  return RunVerb(platform, **verb, arguments.subspan(HasTwoWords(**verb) ? 2 : 1));
}

}  // namespace edl::cli
