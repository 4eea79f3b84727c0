#include "cli/zoo_program.h"

#include <cstdlib>
#include <utility>

#include "image/build_log.h"

namespace edl::cli {

std::string Variable(const Platform& platform, const char* name) {
  const char* value = platform.variable(name);
  return value == nullptr ? "" : value;
}

bool HasProgram(const Platform& platform, const std::string& name) {
  return FindProgram(name, Variable(platform, "PATH")).has_value();
}

FlagSpec BuilderFlag() {
  std::vector<std::string> choices = image::BuilderNames();
  choices.insert(choices.begin(), "");
  return {.name = "builder",
          .default_value = "",
          .help =
              "The program that builds images; empty: the first of these in $PATH, or docker if "
              "$DOCKER_HOST is set.",
          .choices = std::move(choices)};
}

Result<std::unique_ptr<image::Builder>> ChooseBuilder(const Platform& platform,
                                                      const FlagValues& flags) {
  return image::FindBuilder(
      flags.String("builder"), [&](const std::string& name) { return HasProgram(platform, name); },
      Variable(platform, "DOCKER_HOST"));
}

Result<ShownRun> RunAndShowOutput(Platform& platform, const std::vector<std::string>& command) {
  EDL_ASSIGN_OR_RETURN(const FileDescriptor signals, platform.catch_signals());
  image::BuildLog log;
  EDL_ASSIGN_OR_RETURN(const ProgramEnd end,
                       platform.run({.command = command,
                                     .environment = {},
                                     .on_output =
                                         [&](std::string_view text, OutputStream stream) {
                                           log.Append(text);
                                           std::ostream& to = stream == OutputStream::kStderr
                                                                  ? platform.err
                                                                  : platform.out;
                                           to << text;
                                           to.flush();
                                         },
                                     .signals = signals.get()}));
  return ShownRun{
      .succeeded = end.code == 0,
      .interrupted_by = end.interrupted_by,
      .step = log.step(),
      .reason = log.reason().empty() ? fmt::format("exit code {}", end.code) : log.reason()};
}

int FailShownRun(Platform& platform, const std::string& what, const ShownRun& end,
                 const std::string& hint) {
  if (end.interrupted_by != 0) {
    Fail(platform, FailedPrecondition("{}: interrupted", what));
    return kExitSignalBase + end.interrupted_by;
  }
  std::string message = what;
  if (!end.step.empty()) message += ": " + end.step;
  message += ": " + end.reason;
  if (!hint.empty()) message += "\n  " + hint;
  return Fail(platform, FailedPrecondition("{}", message));
}

Result<std::unique_ptr<ScratchFolder>> ScratchFolder::Make() {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "elasticdl-XXXXXX").string();
  if (error)
    return FailedPrecondition("cannot find a folder for temporary files: {}; set $TMPDIR",
                              error.message());
  if (mkdtemp(name.data()) == nullptr) return Errno("making {}", name);
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(name));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace edl::cli
