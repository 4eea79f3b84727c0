#include "cli/command_check.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/run_program.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;
using backend::Finding;
using CheckResult = Finding::CheckResult;

// The words before the first character that has a meaning for the shell.
std::vector<std::string> PlainWords(std::string_view command) {
  std::vector<std::string> words;
  while (true) {
    const size_t begin = command.find_first_not_of(" \t\n");
    if (begin == std::string_view::npos) return words;
    command.remove_prefix(begin);
    const size_t end = std::min(command.find_first_of(" \t\n"), command.size());
    const std::string_view word = command.substr(0, end);
    if (word.find_first_of("$`'\"\\|&;<>(){}[]*?!#~") != std::string_view::npos) return words;
    words.emplace_back(word);
    command.remove_prefix(end);
  }
}

bool IsAssignment(std::string_view word) {
  const size_t equals = word.find('=');
  return equals != std::string_view::npos && equals > 0 && word.find('/') > equals;
}

// The words without the variable assignments and `exec` before the program.
std::vector<std::string> ProgramWords(const std::string& command) {
  std::vector<std::string> words = PlainWords(command);
  const auto first = std::find_if_not(words.begin(), words.end(), [](const std::string& word) {
    return word == "exec" || IsAssignment(word);
  });
  words.erase(words.begin(), first);
  return words;
}

// The script that Python runs: its first argument that is not an option. Empty: no script (-m, -c).
std::string ScriptOf(const std::vector<std::string>& words) {
  const auto found = std::find_if(words.begin() + 1, words.end(), [](const std::string& word) {
    return !word.starts_with('-') || word == "-m" || word == "-c";
  });
  return found == words.end() || found->starts_with('-') ? "" : *found;
}

Finding CheckModules(const Platform& platform, const job::JobSpec& job, const std::string& python,
                     const fs::path& script) {
  if (Succeeds(platform, job, {python, "-c", "import elasticai_api"})) {
    return {.what = "elasticai_api", .detail = python + " can import it"};
  }
  // A program that reads no shards does not need elasticai_api.
  const Result<std::string> text = script.empty() ? std::string() : ReadFile(script);
  const bool needed = text.ok() && text->find("elasticai_api") != std::string::npos;
  return {
      .result = needed ? CheckResult::kMissing : CheckResult::kCannotTell,
      .what = "elasticai_api",
      .detail = fmt::format("{} cannot import it, and programs that read shards need it", python),
      .fix = fmt::format("{} -m pip install elasticai_api, or name another Python in "
                         "--job_command",
                         python)};
}

void CheckPythonProgram(const Platform& platform, const job::JobSpec& job,
                        const std::vector<std::string>& words, std::vector<Finding>& findings) {
  fs::path script = ScriptOf(words);
  const bool here = !script.empty() && !IsMounted(job, script.string());
  if (here) {
    script = platform.folder / script;
    std::error_code ignored;
    const bool exists = fs::exists(script, ignored);
    findings.push_back({.result = exists ? CheckResult::kOk : CheckResult::kMissing,
                        .what = script.filename().string(),
                        .detail = exists ? "exists" : script.string() + " does not exist",
                        .fix = exists ? "" : "correct the path in --job_command"});
  }
  findings.push_back(CheckModules(platform, job, words.front(), here ? script : fs::path()));
}

}  // namespace

bool Succeeds(const Platform& platform, const job::JobSpec& job, std::vector<std::string> command) {
  Program program;
  program.command = std::move(command);
  for (const auto& [name, value] : job.envs)
    program.environment.push_back(fmt::format("{}={}", name, value));
  const Result<ProgramEnd> end = platform.run(std::move(program));
  return end.ok() && end->code == 0;
}

bool IsMounted(const job::JobSpec& job, const std::string& path) {
  return std::any_of(job.volumes.begin(), job.volumes.end(), [&](const job::Volume& volume) {
    return path.starts_with(volume.mount_path);
  });
}

std::vector<Finding> CheckCommand(const Platform& platform, const job::JobSpec& job) {
  const std::vector<std::string> words = ProgramWords(job.job_command);
  if (words.empty()) {
    return {{.result = CheckResult::kCannotTell,
             .what = "--job_command",
             .detail = "not checked: it begins with something that only the shell can resolve"}};
  }
  const std::string& program = words.front();
  if (!Succeeds(platform, job, {"/bin/bash", "-c", "type -t -- \"$1\"", "bash", program}) &&
      !IsMounted(job, program)) {
    const bool python = program == "python";
    return {{.result = CheckResult::kMissing,
             .what = program,
             .detail = "--job_command begins with it, but PATH has no such command",
             .fix = python ? "write python3, or activate the environment that has python"
                           : "correct --job_command, or install the program"}};
  }
  std::vector<Finding> findings = {{.what = program, .detail = "found in PATH"}};
  if (fs::path(program).filename().string().starts_with("python")) {
    CheckPythonProgram(platform, job, words, findings);
  }
  return findings;
}

}  // namespace edl::cli
