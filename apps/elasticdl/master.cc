#include "apps/elasticdl/master.h"

#include <filesystem>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include "backend/local/local_backend.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "job/job_file.h"
#include "job/job_spec.h"
#include "job/train_flags.h"
#include "master/core.h"
#include "master/hands.h"
#include "master/ledger.h"
#include "master/loop.h"
#include "master/server.h"

namespace edl::apps {
namespace {

// What the agent and the client make of the master's end.
constexpr int kSucceeded = 0;
constexpr int kFailed = 1;
constexpr int kBadConfiguration = 2;
constexpr int kStopped = 3;

std::map<std::string, std::string> Environment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (const size_t at = text.find('='); at != std::string::npos) {
      environment[text.substr(0, at)] = text.substr(at + 1);
    }
  }
  return environment;
}

int ExitCodeOf(job::JobState state) {
  if (state == job::JobState::kSucceeded) return kSucceeded;
  return state == job::JobState::kStopped ? kStopped : kFailed;
}

struct Setting {
  job::JobSpec job;
  std::filesystem::path folder;
  std::string address;
  std::string token;
};

Result<Setting> ReadSetting(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  EDL_ASSIGN_OR_RETURN(const FlagValues flags,
                       job::ParseWithJobFile(job::MasterFlags(), arguments));
  Setting setting;
  EDL_ASSIGN_OR_RETURN(setting.job, job::MakeJobSpec(flags));
  setting.folder = flags.Text("job_dir");
  if (setting.folder.empty()) {
    return InvalidArgument("the master needs --job_dir: it is started by `elasticdl train`");
  }
  setting.address = "127.0.0.1:" + flags.Text("port");
  EDL_ASSIGN_OR_RETURN(setting.token, ReadFile(setting.folder / "token"));
  while (!setting.token.empty() && setting.token.back() == '\n') setting.token.pop_back();
  return setting;
}

Result<job::JobState> Run(const Setting& setting) {
  EDL_ASSIGN_OR_RETURN(master::Ledger ledger,
                       master::Ledger::Open((setting.folder / "ledger.sqlite").string()));
  EDL_ASSIGN_OR_RETURN(const auto backend, backend::local::LocalBackend::Connect(setting.folder));
  const SystemClock clock;
  std::random_device random;
  master::Core core(ledger, setting.job, (uint64_t{random()} << 32) | random());
  core.set_process_id(getpid());
  EDL_RETURN_IF_ERROR(core.Load(clock.Now(), clock.WallNow()));
  EDL_RETURN_IF_ERROR(core.Commit());

  master::Hands hands(*backend, setting.job,
                      {.master_address = setting.address,
                       .token_file = (setting.folder / "token").string(),
                       .master_env = Environment()});
  const std::filesystem::path status_file = setting.folder / "status.json";
  master::Loop loop(
      core, clock,
      {.commands = [&](std::vector<master::Command> commands) { hands.Do(std::move(commands)); },
       .view =
           [&](const job::JobView& view) {
             const Status written = WriteFileAtomically(status_file, view.ToJson());
             if (!written.ok()) LOG_WARNING("{}", written.message());
           },
       .scan = [&](std::vector<std::string> replicas) { hands.Scan(std::move(replicas)); }});
  EDL_ASSIGN_OR_RETURN(const auto server,
                       master::Server::Start(setting.address, setting.token, setting.job, core));
  hands.Start(
      [&](const job::ReplicaEvent& event, std::vector<std::string> last_lines) {
        loop.Post([event, last_lines = std::move(last_lines)](master::Core& core) {
          core.OnReplicaEvent(event, last_lines);
        });
      },
      [&](const std::string& replica, std::string text) {
        loop.Post(
            [replica, text = std::move(text)](master::Core& core) { core.OnLog(replica, text); });
      });
  const Status ran = loop.Run(server->queue());
  if (!ran.ok()) {
    LOG_ERROR(
        "the ledger cannot be written: {}; the job stops here, nothing is lost: make room "
        "and go on with `elasticdl train --resume`",
        ran.message());
    _exit(kBadConfiguration);
  }
  // Calls that are still held end with the process: nobody is left to take their answers, and
  // waiting for them would only delay the end.
  _exit(ExitCodeOf(core.state()));
}

}  // namespace

int RunMaster(int argc, char** argv) {
  const Result<Setting> setting = ReadSetting(argc, argv);
  if (!setting.ok()) {
    LOG_ERROR("{}", setting.status().message());
    return kBadConfiguration;
  }
  SetLogLevel(setting->job.log_level);
  const auto ended = Run(*setting);
  LOG_ERROR("the master cannot start: {}", ended.status().message());
  return kBadConfiguration;
}

}  // namespace edl::apps
