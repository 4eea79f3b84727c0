#include <algorithm>
#include <map>
#include <system_error>

#include <fmt/ranges.h>

#include "base/file.h"
#include "base/version.h"
#include "cli/verbs.h"
#include "image/dockerfile.h"
#include "image/image_name.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;

// A file to copy into the build context.
struct Copied {
  fs::path from;
  fs::path to;
};

// Everything that will be written.
struct Plan {
  image::ZooRecipe recipe;
  std::vector<Copied> copies;
};

// `path` relative to the folder; empty: it is outside of the folder.
std::string Inside(const fs::path& folder, const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(folder / path, error);
  const fs::path top = fs::weakly_canonical(folder, error);
  const fs::path relative = whole.lexically_relative(top);
  if (error || relative.empty() || *relative.begin() == "..") return "";
  return relative.string();
}

Status PlanModels(const Platform& platform, const FlagValues& flags, Plan& plan) {
  const std::string& typed = flags.String("model_zoo");
  std::error_code ignored;
  if (!fs::is_directory(platform.folder / typed, ignored)) {
    return InvalidArgument("--model_zoo={} is not a folder", typed);
  }
  plan.recipe.model_zoo = Inside(platform.folder, typed);
  if (plan.recipe.model_zoo.empty()) {
    return InvalidArgument(
        "--model_zoo={} is outside of the current folder, which is the build context; change to a "
        "folder that contains it",
        typed);
  }
  plan.recipe.has_requirements = fs::exists(platform.folder / typed / "requirements.txt", ignored);
  return Ok();
}

// The wheels of this version in a folder, by package.
std::map<std::string, std::vector<fs::path>> WheelsIn(const fs::path& folder,
                                                      std::error_code& error) {
  std::map<std::string, std::vector<fs::path>> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    for (const std::string_view package : image::kZooPackages) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(fmt::format("{}-{}-", package, kVersion)) && name.ends_with(".whl")) {
        found[std::string(package)].push_back(entry.path());
      }
    }
  }
  return found;
}

// The folder dist/ of the clone that contains `folder`, if all wheels of this version are in it.
// Empty: there is none.
std::string WheelsOfClone(const fs::path& folder) {
  std::error_code ignored;
  for (fs::path parent = fs::weakly_canonical(folder, ignored); !parent.empty();
       parent = parent.parent_path()) {
    if (fs::exists(parent / "tools/wheels", ignored) &&
        fs::exists(parent / "src/base/version.h", ignored)) {
      const bool complete = WheelsIn(parent / "dist", ignored).size() == image::kZooPackages.size();
      return complete ? (parent / "dist").string() : "";
    }
    if (parent == parent.root_path()) break;
  }
  return "";
}

Status PlanWheels(Platform& platform, const FlagValues& flags, Plan& plan) {
  std::string typed = flags.String("local_pkg_dir");
  if (typed.empty()) {
    typed = WheelsOfClone(platform.folder);
    if (typed.empty()) return Ok();
    platform.out << "the image installs ElasticDL from the wheels in " << typed << "\n";
  }
  std::error_code error;
  const auto wheels = WheelsIn(platform.folder / typed, error);
  if (error) return InvalidArgument("--local_pkg_dir={}: {}", typed, error.message());
  for (const std::string_view package : image::kZooPackages) {
    if (wheels.contains(std::string(package))) continue;
    return InvalidArgument(
        "--local_pkg_dir={}: there is no wheel of {} {}; the folder must have the wheels of {}; "
        "`make wheels` in a clone of ElasticDL builds them",
        typed, package, kVersion, fmt::join(image::kZooPackages, ", "));
  }
  plan.recipe.only_python_311 =
      std::ranges::none_of(wheels.at("elasticdl"), [](const fs::path& wheel) {
        return wheel.filename().string().find("-abi3-") != std::string::npos;
      });
  plan.recipe.wheels = Inside(platform.folder, typed);
  if (!plan.recipe.wheels.empty()) return Ok();
  plan.recipe.wheels = "wheels";
  for (const auto& [package, files] : wheels) {
    for (const fs::path& wheel : files) {
      plan.copies.push_back({wheel, platform.folder / "wheels" / wheel.filename()});
    }
  }
  return Ok();
}

Status PlanClusterSpec(const Platform& platform, const FlagValues& flags, Plan& plan) {
  const std::string& typed = flags.String("cluster_spec");
  if (typed.empty()) return Ok();
  const fs::path file = platform.folder / typed;
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) {
    return InvalidArgument("--cluster_spec={} is not a file", typed);
  }
  plan.recipe.cluster_spec = Inside(platform.folder, typed);
  if (plan.recipe.cluster_spec.empty()) {
    plan.recipe.cluster_spec = file.filename().string();
    plan.copies.push_back({file, platform.folder / file.filename()});
  }
  return Ok();
}

// Checks a value that is written into a line of the Dockerfile unchanged.
Status CheckWord(const FlagValues& flags, const std::string& flag) {
  const std::string& value = flags.String(flag);
  const bool one_word = std::none_of(value.begin(), value.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\'' || c == '\\';
  });
  if (one_word) return Ok();
  return InvalidArgument("--{}='{}' must be one word without quotes", flag, value);
}

Result<Plan> MakePlan(Platform& platform, const FlagValues& flags) {
  std::error_code ignored;
  if (fs::exists(platform.folder / "Dockerfile", ignored) && !flags.Bool("force")) {
    return FailedPrecondition(
        "Dockerfile already exists here; edit it, or overwrite it with --force");
  }
  Plan plan;
  EDL_RETURN_IF_ERROR(
      image::ParseImageName(flags.String("base_image")).status().Within("--base_image"));
  EDL_RETURN_IF_ERROR(CheckWord(flags, "extra_pypi_index"));
  EDL_RETURN_IF_ERROR(CheckWord(flags, "user"));
  plan.recipe.base_image = flags.String("base_image");
  plan.recipe.extra_pypi_index = flags.String("extra_pypi_index");
  plan.recipe.user = flags.String("user");
  plan.recipe.version = kVersion;
  EDL_RETURN_IF_ERROR(PlanModels(platform, flags, plan));
  EDL_RETURN_IF_ERROR(PlanWheels(platform, flags, plan));
  EDL_RETURN_IF_ERROR(PlanClusterSpec(platform, flags, plan));
  return plan;
}

// The Dockerfile is written last, so that everything it refers to exists.
Status Carry(Platform& platform, const Plan& plan) {
  constexpr unsigned kReadable = 0644;
  for (const Copied& copy : plan.copies) {
    std::error_code error;
    fs::create_directories(copy.to.parent_path(), error);
    fs::copy_file(copy.from, copy.to, fs::copy_options::overwrite_existing, error);
    if (error) {
      return FailedPrecondition("copying {} to {}: {}", copy.from.string(), copy.to.string(),
                                error.message());
    }
    platform.out << "copied " << copy.from.string() << " to here\n";
  }
  const fs::path ignore = platform.folder / ".dockerignore";
  std::error_code ignored;
  if (!fs::exists(ignore, ignored)) {
    EDL_RETURN_IF_ERROR(WriteFileAtomically(ignore, image::ZooDockerignore(), kReadable));
    platform.out << "wrote .dockerignore\n";
  }
  EDL_RETURN_IF_ERROR(WriteFileAtomically(platform.folder / "Dockerfile",
                                          image::ZooDockerfile(plan.recipe), kReadable));
  platform.out << "wrote Dockerfile; now: elasticdl zoo build --image=NAME .\n";
  return Ok();
}

}  // namespace

const FlagTable& ZooInitFlags() {
  static const FlagTable table(
      {{.name = "model_zoo",
        .default_value = ".",
        .help =
            "The folder of the models, in or below the current one; /model_zoo in the image. The "
            "packages in its requirements.txt are installed.",
        .value_name = "PATH"},
       {.name = "base_image",
        .default_value = "python:3.11-bookworm",
        .help = "The image to start from: Debian 12 or newer, with pip.",
        .value_name = "NAME"},
       {.name = "extra_pypi_index",
        .default_value = "",
        .help = "An additional index of Python packages.",
        .value_name = "URL"},
       {.name = "local_pkg_dir",
        .default_value = "",
        .help = "A folder with ElasticDL's wheels (see `make wheels`), which are installed instead "
                "of those of the index; empty: dist/ of the clone of ElasticDL that contains the "
                "current folder, if the wheels are there.",
        .value_name = "PATH"},
       {.name = "cluster_spec",
        .default_value = "",
        .help = "A Python file that adapts pods; /cluster_spec/FILE in the image.",
        .value_name = "PATH"},
       {.name = "user",
        .default_value = "",
        .help = "The user in the image, as UID, UID:GID or a name that exists in the base image; "
                "empty: the user of the base image, usually root.",
        .value_name = "USER"},
       {.name = "force",
        .type = FlagType::kSwitch,
        .default_value = "false",
        .help = "Overwrite an existing Dockerfile."}});
  return table;
}

int ZooInit(Platform& platform, const FlagValues& flags) {
  const Result<Plan> plan = MakePlan(platform, flags);
  if (!plan.ok()) return Fail(platform, plan.status());
  const Status carried = Carry(platform, *plan);
  if (!carried.ok()) return Fail(platform, carried);
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
