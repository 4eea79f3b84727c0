#include <chrono>

#include "cli/job_master.h"
#include "cli/job_store.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

Result<std::string> Ledger(Platform& platform, const JobFolder& folder) {
  return AskMasterOrReadLedger<std::string>(
      platform, folder, [](client::MasterClient& master) { return master.GetLedger(30s); },
      platform.local.read_ledger);
}

}  // namespace

int ShowLedger(Platform& platform, const FlagValues& flags) {
  const Result<JobFolder> folder = JobStore(platform.home).Find(flags.arguments().front());
  if (!folder.ok()) return Fail(platform, folder.status());
  const Result<std::string> ledger = Ledger(platform, *folder);
  if (!ledger.ok()) {
    return Fail(platform, ledger.status().Within(fmt::format("the ledger of {}", folder->name())));
  }
  platform.out << *ledger << (ledger->ends_with("\n") ? "" : "\n");
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
