#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/flags.h"
#include "cli/platform.h"
#include "image/builder.h"

namespace edl::cli {

// The flag --builder.
FlagSpec BuilderFlag();

// The builder that --builder names, or the default one.
Result<std::unique_ptr<image::Builder>> ChooseBuilder(const Platform& platform,
                                                      const FlagValues& flags);

// The value of an environment variable; empty if it is not set.
std::string Variable(const Platform& platform, const char* name);

// Whether $PATH has the program.
bool HasProgram(const Platform& platform, const std::string& name);

// How a program ended whose output was shown while it ran.
struct ShownRun {
  bool succeeded = false;
  int interrupted_by = 0;
  std::string step;    // the build step that failed; may be empty
  std::string reason;  // the error that the program printed
};

// Runs a command and prints its output as it comes. Signals are forwarded to the command. Fails
// only if the command cannot be started.
Result<ShownRun> RunAndShowOutput(Platform& platform, const std::vector<std::string>& command);

// Prints "elasticdl: <what>: <step>: <reason>" for a program that failed, and the hint unless it is
// empty. Returns the exit code.
int FailShownRun(Platform& platform, const std::string& what, const ShownRun& end,
                 const std::string& hint);

// A temporary folder. The destructor deletes it.
class ScratchFolder {
 public:
  static Result<std::unique_ptr<ScratchFolder>> Make();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path path_;
};

}  // namespace edl::cli
