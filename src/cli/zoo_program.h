#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/flags.h"
#include "cli/platform.h"
#include "image/builder.h"

namespace edl::cli {

// --builder.
FlagSpec BuilderFlag();

// The builder that the flags ask for.
Result<std::unique_ptr<image::Builder>> ChooseBuilder(const Platform& platform,
                                                      const FlagValues& flags);

// A variable of the environment; empty: it is not set.
std::string Variable(const Platform& platform, const char* name);

// Whether there is such a program in $PATH.
bool HasProgram(const Platform& platform, const std::string& name);

// How a program ended whose words were shown while it ran.
struct ShownEnd {
  bool succeeded = false;
  int interrupted_by = 0;
  std::string step;    // where it failed; may be empty
  std::string reason;  // why, in its own words
};

// Runs a command and shows what it says; a signal ends it. A failure is that of starting it.
Result<ShownEnd> RunShown(Platform& platform, const std::vector<std::string>& command);

// Prints why a shown program failed, as "elasticdl: <what>: <step>: <reason>", with a hint if one
// is known. Returns the exit code.
int FailShown(Platform& platform, const std::string& what, const ShownEnd& end,
              const std::string& hint);

// A folder that goes with this object.
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
