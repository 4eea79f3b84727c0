#include "master/ledger/submission.h"

#include <map>
#include <string>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/log.h"
#include "master/ledger/damaged_entry.h"

namespace edl::master {
namespace {

namespace fs = std::filesystem;

std::string ValueOf(const std::map<std::string, std::string>& meta, const char* key) {
  const auto found = meta.find(key);
  return found == meta.end() ? std::string() : found->second;
}

// The folder to which the files of submission `id` are moved. The id in a ledger may be any text.
fs::path OldFolder(const fs::path& folder, const std::string& id) {
  const bool plain = !id.empty() && id.find_first_not_of("0123456789abcdef") == std::string::npos;
  const std::string name = "old-" + (plain ? id : std::string("unknown"));
  fs::path place = folder / name;
  std::error_code error;
  for (int n = 1; fs::exists(place, error); ++n) place = folder / fmt::format("{}.{}", name, n);
  return place;
}

Status MoveToOldFolder(const fs::path& folder, const std::string& id) {
  const fs::path place = OldFolder(folder, id);
  std::error_code error;
  fs::create_directory(place, error);
  if (error) return StatusFromErrno(error.value(), "creating " + place.string());
  for (const char* name : {"ledger.sqlite-wal", "ledger.sqlite-shm", "checkpoints",
                           // Last: after a crash, the ledger shows that the move is not complete.
                           "ledger.sqlite"}) {
    fs::rename(folder / name, place / name, error);
    if (error && error != std::errc::no_such_file_or_directory) {
      return StatusFromErrno(error.value(), "moving " + (folder / name).string());
    }
  }
  LOG_WARNING("{} has the ledger of another submission ({}): it was moved to {}", folder.string(),
              id.empty() ? "without an id" : id, place.string());
  return Ok();
}

Result<int64_t> VersionOf(const std::map<std::string, std::string>& meta) {
  const std::string counters = ValueOf(meta, "counters");
  if (counters.empty()) return 0;
  const auto in = ReadJson(counters);
  if (!in.is_object()) return DamagedEntry("counters", "expected a JSON object");
  return in.value("version", int64_t{0});
}

Status CheckResume(const fs::path& folder, const job::JobSpec& spec,
                   const std::map<std::string, std::string>& meta) {
  const std::string id = ValueOf(meta, "submission");
  if (!id.empty() && id != spec.submission_id) {
    return FailedPrecondition(
        "the ledger in {} belongs to submission {}, and the job to resume is submission {}; "
        "restore "
        "the ledger of the job, or submit the job again without --resume",
        folder.string(), id, spec.submission_id);
  }
  EDL_ASSIGN_OR_RETURN(const int64_t version, VersionOf(meta));
  if (version >= spec.resume_version) return Ok();
  return FailedPrecondition(
      "job {0} cannot be resumed: its status has {1} completed batches, the ledger in {2} has {3}. "
      "Restore that file (without --volume=claim_name=... a cluster keeps none), or add "
      "--resume_with_lost_progress=true to train again what is lost, or start again with "
      "`elasticdl delete {0}`",
      spec.job_name, spec.resume_version, (folder / "ledger.sqlite").string(), version);
}

}  // namespace

Result<Ledger> OpenLedger(const fs::path& folder, const job::JobSpec& spec) {
  const std::string path = (folder / "ledger.sqlite").string();
  EDL_ASSIGN_OR_RETURN(Ledger ledger, Ledger::Open(path));
  EDL_ASSIGN_OR_RETURN(const auto meta, ledger.Meta());
  const std::string id = ValueOf(meta, "submission");
  if (spec.resumed) {
    EDL_RETURN_IF_ERROR(CheckResume(folder, spec, meta));
  } else if (!meta.empty() && !spec.submission_id.empty() && id != spec.submission_id) {
    {
      const Ledger closed = std::move(ledger);  // before its files are moved
    }
    EDL_RETURN_IF_ERROR(MoveToOldFolder(folder, id));
    EDL_ASSIGN_OR_RETURN(ledger, Ledger::Open(path));
  }
  if (!spec.submission_id.empty()) {
    ledger.PutMeta("submission", spec.submission_id);
    EDL_RETURN_IF_ERROR(ledger.Commit());
  }
  return ledger;
}

}  // namespace edl::master
