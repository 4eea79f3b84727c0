#include <filesystem>
#include <system_error>

#include "tfjob_convert/convert.h"

#include "base/file.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;
using tfjob_convert::Conversion;

// Replaces the content of a file. Keeps its mode and, if it is a symbolic link, the link.
Status ReplaceFile(const std::string& file, const std::string& text) {
  std::error_code error;
  const fs::path path = fs::canonical(file, error);
  if (error) return FailedPrecondition("cannot resolve {}: {}", file, error.message());
  const fs::file_status status = fs::status(path, error);
  if (error || !fs::is_regular_file(status)) {
    return FailedPrecondition("{} is not a regular file", file);
  }
  return WriteFileAtomically(path, text, static_cast<unsigned>(status.permissions()));
}

void PrintNotes(Platform& platform, const Conversion& converted, const std::string& shown) {
  for (const std::string& note : converted.notes) platform.err << note << "\n";
  if (converted.lost_comments) {
    platform.err << "elasticdl: the comments in changed documents are lost\n";
  }
  if (converted.jobs == 0) {
    platform.err << fmt::format("elasticdl: there is no TFJob in {}\n", shown);
  } else if (converted.changed_jobs == 0) {
    platform.err << fmt::format(
        "elasticdl: nothing to change in {}: TFJobs are kubeflow.org/v1 already\n", shown);
  }
}

}  // namespace

const FlagTable& TfJobConvertFlags() {
  static const FlagTable table(
      {{.name = "in_place",
        .type = FlagType::kSwitch,
        .default_value = "false",
        .help = "Replace the content of FILE instead of printing the result. JSON in a file stays "
                "JSON; printed, it becomes YAML.",
        .letter = 'i'}});
  return table;
}

int ConvertTfJobs(Platform& platform, const FlagValues& flags) {
  const std::string& file = flags.arguments().front();
  const bool in_place = flags.Bool("in_place");
  const bool from_input = file == "-";
  if (from_input && in_place) {
    return Fail(platform, InvalidArgument("--in_place needs the name of a file, not '-'"));
  }
  const std::string shown = from_input ? "standard input" : file;
  const Result<std::string> text = from_input ? platform.read_input() : ReadFile(file);
  if (!text.ok()) return Fail(platform, text.status());
  const Result<Conversion> converted = tfjob_convert::Convert(
      *text, in_place ? tfjob_convert::JsonOutput::kJson : tfjob_convert::JsonOutput::kYaml);
  if (!converted.ok()) {
    // Not InvalidArgument: the command line is right.
    return Fail(platform, FailedPrecondition("{}: {}", shown, converted.status().message()));
  }
  if (!in_place) {
    platform.out << converted->text;
  } else if (converted->text != *text) {
    const Status written = ReplaceFile(file, converted->text);
    if (!written.ok()) return Fail(platform, written);
  }
  PrintNotes(platform, *converted, shown);
  return kExitOk;
}

}  // namespace edl::cli
