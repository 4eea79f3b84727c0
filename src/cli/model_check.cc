#include "cli/model_check.h"

#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/run_program.h"
#include "cli/command_check.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;
using backend::Finding;

// A path that the workers use, as it is named on this machine.
Finding CheckPath(const Platform& platform, const std::string& what, const std::string& path,
                  const std::string& fix) {
  const fs::path full = platform.folder / path;
  std::error_code ignored;
  if (fs::exists(full, ignored)) return {.what = what, .detail = full.string()};
  return {.result = Finding::CheckResult::kMissing,
          .what = what,
          .detail = full.string() + " does not exist",
          .fix = fix,
          .blocks = true};
}

}  // namespace

std::vector<Finding> CheckModelFiles(const Platform& platform, const job::JobSpec& job) {
  const job::ModelSpec& model = *job.model;
  const std::string file = job::ModelFile(model.model_zoo, model.model_def).value();
  if (IsMounted(job, file)) return {};
  if (!model.model_zoo.empty()) {
    const Finding zoo =
        CheckPath(platform, "--model_zoo", model.model_zoo, "give the folder of the model zoo");
    if (zoo.result != Finding::CheckResult::kOk) return {zoo};
  }
  return {CheckPath(platform, "--model_def", file,
                    "correct --model_def (FOLDER.FILE.SYMBOL) or --model_zoo")};
}

std::vector<Finding> CheckModel(const Platform& platform, const job::JobSpec& job) {
  std::vector<Finding> findings = CheckModelFiles(platform, job);
  const std::string& python = job.model->python;
  if (!Succeeds(platform, job, {"/bin/bash", "-c", "type -t -- \"$1\"", "bash", python})) {
    findings.push_back({.result = Finding::CheckResult::kMissing,
                        .what = python,
                        .detail = "the workers run it, but PATH has no such command",
                        .fix = "give the Python of the workers with --python or ELASTICDL_PYTHON"});
    return findings;
  }
  findings.push_back({.what = python, .detail = "found in PATH"});
  for (const std::string module : {"elasticdl", "tensorflow"}) {
    if (Succeeds(platform, job,
                 {python, "-c",
                  fmt::format("import importlib.util, sys; "
                              "sys.exit(importlib.util.find_spec('{}') is None)",
                              module)})) {
      findings.push_back({.what = module, .detail = python + " can import it"});
    } else {
      findings.push_back(
          {.result = Finding::CheckResult::kMissing,
           .what = module,
           .detail = fmt::format("{} cannot import it, and the workers need it", python),
           .fix = fmt::format("{} -m pip install {}, or name another Python with --python", python,
                              module)});
    }
  }
  return findings;
}

}  // namespace edl::cli
