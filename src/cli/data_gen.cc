#include <algorithm>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "cli/verbs.h"
#include "cli/zoo_program.h"

namespace edl::cli {
namespace {

// The interpreter that runs the generators. FailedPrecondition: there is none.
Result<std::string> Interpreter(const Platform& platform) {
  const std::string chosen = Variable(platform, "ELASTICDL_PYTHON");
  const std::string name = chosen.empty() ? "python3" : chosen;
  if (!HasProgram(platform, name)) {
    return FailedPrecondition(
        "cannot find {}{}, which generates datasets; install Python 3.8 or newer with NumPy, or "
        "set $ELASTICDL_PYTHON to the path of one",
        chosen.empty() ? "" : "$ELASTICDL_PYTHON=", name);
  }
  return name;
}

// What to do about an error of the interpreter; empty: the error says it.
std::string HintOfPython(const std::string& python, const std::string& reason) {
  if (reason.find("No module named") == std::string::npos) return "";
  return fmt::format(
      "{} cannot import the package elasticdl: run this in the root of a clone of ElasticDL, or "
      "set $ELASTICDL_PYTHON to an interpreter that has the package",
      python);
}

}  // namespace

const FlagTable& DataGenFlags() {
  static const FlagTable table(
      {{.name = "fraction",
        .default_value = "1",
        .help = "The part of the records to generate, above 0 and at most 1.",
        .value_name = "F"},
       {.name = "records_per_file",
        .type = FlagType::kInt,
        .default_value = "16384",
        .help = "How many records a file has.",
        .value_name = "N",
        .at_least = 1},
       {.name = "seed",
        .type = FlagType::kInt,
        .default_value = "1",
        .help = "The same seed gives the same records.",
        .value_name = "N"},
       {.name = "compression",
        .default_value = "none",
        .help = "How the records are compressed.",
        .choices = {"none", "gzip"}}});
  return table;
}

const std::vector<std::string>& DatasetNames() {
  static const std::vector<std::string> names = {"mnist",  "iris",  "criteo", "frappe",
                                                 "census", "heart", "cifar10"};
  return names;
}

int DataGen(Platform& platform, const FlagValues& flags) {
  const std::string& name = flags.arguments().at(0);
  const std::string& folder = flags.arguments().at(1);
  if (std::ranges::find(DatasetNames(), name) == DatasetNames().end()) {
    return Fail(platform, InvalidArgument("there is no dataset '{}'; the datasets are {}", name,
                                          fmt::join(DatasetNames(), ", ")));
  }
  const Result<std::string> python = Interpreter(platform);
  if (!python.ok()) return Fail(platform, python.status());
  std::vector<std::string> command = {*python, "-m", "elasticdl.data_gen", name};
  for (const FlagSpec& flag : DataGenFlags().specs()) {
    command.push_back(fmt::format("--{}={}", flag.name, flags.Text(flag.name)));
  }
  // The folder may begin with a dash.
  command.insert(command.end(), {"--", folder});
  const Result<ShownRun> end = RunAndShowOutput(platform, command);
  if (!end.ok()) return Fail(platform, end.status());
  if (!end->succeeded) {
    return FailShownRun(platform, fmt::format("could not generate {} in {}", name, folder), *end,
                        HintOfPython(*python, end->reason));
  }
  return kExitOk;
}

}  // namespace edl::cli
