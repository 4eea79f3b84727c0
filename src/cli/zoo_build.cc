#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include "base/version.h"
#include "cli/format.h"
#include "cli/verbs.h"
#include "cli/zoo_program.h"
#include "image/dockerfile.h"
#include "image/image_name.h"
#include "image/loader.h"
#include "job/envs.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;

// The git commit of the folder; empty: git does not know it.
std::string CommitOf(const Platform& platform, const fs::path& folder) {
  const Result<ProgramEnd> end =
      platform.run({.command = {"git", "-C", folder.string(), "describe", "--always", "--dirty",
                                "--abbrev=40", "--exclude=*"},
                    .environment = {}});
  if (!end.ok() || end->code != 0) return "";
  return end->output.substr(0, end->output.find('\n'));
}

// The whole request, except for `pip_config`.
Result<image::BuildRequest> MakeRequest(const Platform& platform, const FlagValues& flags) {
  const std::string given = flags.arguments().empty() ? "." : flags.arguments().front();
  const fs::path folder = platform.folder / given;
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return InvalidArgument("{} is not a folder; give the folder that has the Dockerfile", given);
  }
  if (flags.String("image").empty()) {
    return InvalidArgument("an image needs a name: elasticdl zoo build --image=NAME {}", given);
  }
  EDL_RETURN_IF_ERROR(image::ParseImageName(flags.String("image")).status().Within("--image"));
  image::BuildRequest request{.image = flags.String("image"),
                              .context = folder.lexically_normal(),
                              .dockerfile = flags.String("file").empty()
                                                ? folder / "Dockerfile"
                                                : platform.folder / flags.String("file"),
                              .use_cache = !flags.Bool("no_cache"),
                              .pull = flags.Bool("pull")};
  request.dockerfile = request.dockerfile.lexically_normal();
  EDL_ASSIGN_OR_RETURN(request.arguments, job::ParseEnvs(flags.String("build_args")));
  const Result<std::string> text = ReadFile(request.dockerfile);
  if (text.status().code() == Code::kNotFound) {
    return InvalidArgument("{} does not exist; `elasticdl zoo init` writes it",
                           request.dockerfile.string());
  }
  if (!text.ok()) return text.status();
  request.layer_time = image::LayerTime(*text);
  request.labels["org.opencontainers.image.version"] = kVersion;
  const std::string commit = CommitOf(platform, folder);
  if (!commit.empty()) request.labels["org.opencontainers.image.revision"] = commit;
  request.host = image::ReadHostSettings(platform.variable);
  return request;
}

std::string HintOf(const ShownRun& end) {
  if (end.step.find("FROM ") == std::string::npos) return "";
  return "cannot get the base image; to use another one: elasticdl zoo init --force "
         "--base_image=NAME";
}

// The command that loads the image onto the nodes of the cluster on this machine.
Result<image::LoadCommand> ChooseLoadWay(const Platform& platform, const fs::path& archive) {
  return image::FindLoadCommand(
      {.context = platform.cluster_context(),
       .command = Variable(platform, "ELASTICDL_LOAD_IMAGE"),
       .has_program = [&](const std::string& name) { return HasProgram(platform, name); }},
      archive);
}

int Build(Platform& platform, const image::Builder& builder, const image::BuildRequest& request) {
  const Time begin = platform.clock.Now();
  const Result<ShownRun> end = RunAndShowOutput(platform, builder.Build(request));
  if (!end.ok()) return Fail(platform, end.status());
  if (!end->succeeded) {
    return FailShownRun(platform,
                        fmt::format("{} could not build {}", builder.name(), request.image), *end,
                        HintOf(*end));
  }
  const std::chrono::duration<double> took = platform.clock.Now() - begin;
  platform.out << "built " << request.image << " with " << builder.name() << " in "
               << Span(took.count()) << "\n";
  platform.out.flush();
  return kExitOk;
}

int Load(Platform& platform, const image::Builder& builder, const std::string& image,
         const image::LoadCommand& load, const fs::path& archive) {
  const std::string full_name = image::ParseImageName(image)->Full();
  for (const std::vector<std::string>& step :
       {builder.Save(image, full_name, archive), load.command}) {
    const Result<ShownRun> end = RunAndShowOutput(platform, step);
    if (!end.ok()) return Fail(platform, end.status());
    if (!end->succeeded) {
      return FailShownRun(
          platform,
          fmt::format("{} was built but could not be loaded into the {}", image, load.cluster),
          *end, "");
    }
  }
  platform.out << "loaded " << full_name << " into the " << load.cluster << "\n";
  platform.out.flush();
  return kExitOk;
}

}  // namespace

const FlagTable& ZooBuildFlags() {
  static const FlagTable table(
      {{.name = "image", .default_value = "", .help = "The image's name.", .value_name = "NAME"},
       {.name = "file",
        .default_value = "",
        .help = "The Dockerfile; empty: Dockerfile in the folder.",
        .value_name = "PATH",
        .letter = 'f'},
       {.name = "build_args",
        .default_value = "",
        .help = "Values for the Dockerfile's ARG lines.",
        .value_name = "NAME=VALUE,..."},
       BuilderFlag(),
       {.name = "no_cache",
        .type = FlagType::kSwitch,
        .default_value = "false",
        .help = "Run every step again instead of using cached layers."},
       {.name = "pull",
        .type = FlagType::kSwitch,
        .default_value = "false",
        .help = "Pull a newer version of the base image first."},
       {.name = "load",
        .type = FlagType::kSwitch,
        .default_value = "false",
        .help = "Load the image onto the nodes of a cluster on this machine (kind, k3d, k3s, "
                "minikube, or with the command in $ELASTICDL_LOAD_IMAGE)."}});
  return table;
}

int ZooBuild(Platform& platform, const FlagValues& flags) {
  Result<image::BuildRequest> request = MakeRequest(platform, flags);
  if (!request.ok()) return Fail(platform, request.status());
  const Result<std::unique_ptr<image::Builder>> builder = ChooseBuilder(platform, flags);
  if (!builder.ok()) return Fail(platform, builder.status());
  const Result<std::unique_ptr<ScratchFolder>> scratch = ScratchFolder::Make();
  if (!scratch.ok()) return Fail(platform, scratch.status());
  request->pip_config = (*scratch)->path() / "pip.conf";
  // The URL of a package index may contain a password.
  const Status written = WriteFileAtomically(request->pip_config, request->host.pip_config, 0600);
  if (!written.ok()) return Fail(platform, written);
  const fs::path archive = (*scratch)->path() / "image.tar";
  std::optional<image::LoadCommand> load;
  if (flags.Bool("load")) {  // checked before minutes of building
    Result<image::LoadCommand> found = ChooseLoadWay(platform, archive);
    if (!found.ok()) return Fail(platform, found.status());
    load = std::move(*found);
  }
  const int built = Build(platform, **builder, *request);
  if (built != kExitOk || !load.has_value()) return built;
  return Load(platform, **builder, request->image, *load, archive);
}

}  // namespace edl::cli
