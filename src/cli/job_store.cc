#include "cli/job_store.h"

#include <algorithm>
#include <array>
#include <system_error>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/secret.h"
#include "base/text.h"
#include "job/names.h"
#include "job/pairs.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;

Result<std::string> ReadTrimmed(const fs::path& path) {
  EDL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return std::string(Trim(text));
}

// Creates `path` and its missing parents, accessible only to this user.
Status MakePrivateFolder(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return Ok();
  if (path.has_parent_path() && path.parent_path() != path) {
    EDL_RETURN_IF_ERROR(MakePrivateFolder(path.parent_path()));
  }
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Errno("making {}", path.string());
  return fs::is_directory(path, ignored)
             ? Ok()
             : FailedPrecondition("{} exists and is not a folder", path.string());
}

Result<std::string> MakeToken() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return Errno("generating the job's token");
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

Status FillFolder(const JobFolder& folder, std::string_view spec, const job::JobView& view) {
  EDL_ASSIGN_OR_RETURN(const std::string token, MakeToken());
  EDL_RETURN_IF_ERROR(folder.WriteToken(token));
  EDL_RETURN_IF_ERROR(folder.WriteSpec(spec));
  EDL_RETURN_IF_ERROR(folder.WriteView(view));
  return MakePrivateFolder(folder.logs());
}

}  // namespace

Result<std::string> JobFolder::ReadSpec() const { return ReadFile(spec()); }
Status JobFolder::WriteSpec(std::string_view text) const {
  return WriteFileAtomically(spec(), text, 0600);
}

Result<job::JobView> JobFolder::ReadView() const {
  EDL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path_ / "status.json"));
  Result<job::JobView> view = job::JobView::FromJson(text);
  if (!view.ok()) return view.status().Within((path_ / "status.json").string());
  return view;
}
Status JobFolder::WriteView(const job::JobView& view) const {
  return WriteFileAtomically(path_ / "status.json", view.ToJson(), 0600);
}

Result<JobFolder::End> JobFolder::ReadEnd() const {
  EDL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path_ / "end.json"));
  const auto in = ReadJson(text);
  const auto code = in.is_object() ? in.find("exit_code") : in.end();
  const auto reason = in.is_object() ? in.find("reason") : in.end();
  if (code == in.end() || !code->is_number_integer() || reason == in.end() ||
      !reason->is_string()) {
    return DataLoss("cannot parse {}: expected a JSON object with 'exit_code' and 'reason'",
                    (path_ / "end.json").string());
  }
  return End{code->get<int>(), reason->get<std::string>()};
}

Result<std::string> JobFolder::ReadToken() const { return ReadSecretFile(path_ / "token"); }
Status JobFolder::WriteToken(std::string_view token) const {
  return WriteFileAtomically(path_ / "token", token, 0600);
}
Result<std::string> JobFolder::ReadAddress() const { return ReadTrimmed(path_ / "master.addr"); }

std::vector<std::string> JobFolder::LogNames() const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(logs(), error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() == ".log") names.push_back(entry->path().stem().string());
  }
  const auto key = [](const std::string& name) {
    return std::pair(name == "master" || name == "agent", name);
  };
  std::sort(names.begin(), names.end(),
            [&](const std::string& a, const std::string& b) { return key(a) < key(b); });
  return names;
}

Result<std::vector<std::string>> JobStore::List() const {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entries(jobs_dir(), error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    // Folders that are being created or deleted have a name that no job can have.
    const std::string name = entries->path().filename().string();
    if (job::CheckJobName(name).ok()) names.push_back(name);
  }
  if (error) return StatusFromErrno(error.value(), "listing " + jobs_dir().string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<JobFolder> JobStore::Find(const std::string& name) const {
  EDL_ASSIGN_OR_RETURN(const std::vector<std::string> names, List());
  if (std::binary_search(names.begin(), names.end(), name)) return JobFolder(jobs_dir() / name);
  const std::vector<std::string> near = NearestNames(name, names);
  if (!near.empty()) {
    return NotFound("there is no job {}; did you mean {}?", name, fmt::join(near, " or "));
  }
  return NotFound("there is no job {} in {}; `elasticdl list` shows all jobs", name,
                  jobs_dir().string());
}

Result<JobFolder> JobStore::Create(const std::string& name, std::string_view spec,
                                   const job::JobView& view) const {
  EDL_RETURN_IF_ERROR(MakePrivateFolder(jobs_dir()));
  // Filled under a name that no job can have, then renamed, so that a job is never incomplete.
  std::string temporary = (jobs_dir() / ("." + name + ".XXXXXX")).string();
  if (mkdtemp(temporary.data()) == nullptr) return Errno("making {}", temporary);
  const JobFolder folder(jobs_dir() / name);
  Status status = FillFolder(JobFolder(temporary), spec, view);
  if (status.ok() && rename(temporary.c_str(), folder.path().c_str()) != 0) {
    status =
        errno == ENOTEMPTY || errno == EEXIST
            ? AlreadyExists("job {0} already exists; delete it with `elasticdl delete {0}`", name)
            : Errno("making {}", folder.path().string());
  }
  if (status.ok()) return folder;
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
  return status;
}

Status JobStore::Remove(const JobFolder& folder) const {
  const fs::path doomed = jobs_dir() / ("." + folder.name() + ".deleted");
  std::error_code error;
  fs::remove_all(doomed, error);
  if (rename(folder.path().c_str(), doomed.c_str()) != 0) {
    return Errno("deleting {}", folder.path().string());
  }
  fs::remove_all(doomed, error);
  if (error) return StatusFromErrno(error.value(), "deleting " + doomed.string());
  return Ok();
}

}  // namespace edl::cli
