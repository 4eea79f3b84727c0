#include "cli/verbs.h"
#include "cli/zoo_program.h"
#include "image/image_name.h"

namespace edl::cli {
namespace {

// What to do about an error of the registry; empty: unknown.
std::string HintOf(const std::string& reason, const std::string& builder,
                   const image::ImageName& name) {
  for (const std::string_view word :
       {"unauthorized", "authentication required", "denied", "forbidden", "no basic auth"}) {
    if (reason.find(word) != std::string::npos) {
      return fmt::format("to log in: {} login {}", builder, name.host);
    }
  }
  if (reason.find("not known") != std::string::npos ||
      reason.find("does not exist") != std::string::npos) {
    return fmt::format("to build it: elasticdl zoo build --image={} .", name.Full());
  }
  return "";
}

}  // namespace

const FlagTable& ZooPushFlags() {
  static const FlagTable table({BuilderFlag()});
  return table;
}

int ZooPush(Platform& platform, const FlagValues& flags) {
  const std::string& typed = flags.arguments().front();
  const Result<image::ImageName> name = image::ParseImageName(typed);
  if (!name.ok()) return Fail(platform, name.status());
  const Result<std::unique_ptr<image::Builder>> builder = ChooseBuilder(platform, flags);
  if (!builder.ok()) return Fail(platform, builder.status());
  const Result<ShownRun> end = RunAndShowOutput(platform, (*builder)->Push(typed));
  if (!end.ok()) return Fail(platform, end.status());
  const std::string& program = (*builder)->name();
  if (!end->succeeded) {
    return FailShownRun(platform,
                        fmt::format("{} could not push {} to {}", program, typed, name->host), *end,
                        HintOf(end->reason, program, *name));
  }
  platform.out << "pushed " << name->Full() << "\n";
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
