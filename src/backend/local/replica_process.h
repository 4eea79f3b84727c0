#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

#include "base/file.h"
#include "base/status.h"

namespace edl::backend::local {

// One program to run.
struct ProcessSpec {
  std::string log_name;
  std::vector<std::string> command;
  std::map<std::string, std::string> env;  // added to the inherited environment
  std::string process_id_variable;         // set to the process id that users see; may be empty
  std::filesystem::path log_dir;
  int64_t log_limit_bytes = 0;
  std::filesystem::path cgroup;  // the group to join; may be empty
  int outer_proc = -1;           // /proc of the PID namespace of the users
  rlimit open_files{};           // the limit of the client
};

// A message from the shim to the agent.
struct ShimReport {
  enum class Kind : int32_t { kStarted, kNotStarted, kExited };
  Kind kind = Kind::kStarted;
  int32_t error = 0;        // for kNotStarted: errno
  int32_t wait_status = 0;  // for kExited: as waitpid returns it
  int32_t in_cgroup = 0;    // for kStarted: whether it joined its cgroup
  int64_t process_id = 0;   // for kStarted: as the user sees it
};

// A message from the agent to the shim.
struct StopRequest {
  int64_t grace_ms = 0;  // SIGTERM now, SIGKILL after this
};

// A program that the agent runs. Its parent is a *shim*, a small process that writes the output of
// the program to the log and adopts its orphans (subreaper). When the program has ended, the shim
// finds and kills every process that it left, in whatever session, and only then reports the exit.
// The shim does the same when the agent dies.
//
// Confined to the agent's loop.
class ReplicaProcess {
 public:
  // Returns when the shim is forked; the report kStarted or kNotStarted follows. An error: the
  // socket or the process of the shim could not be created.
  static Result<ReplicaProcess> Start(const ProcessSpec& spec);

  pid_t shim() const { return shim_; }
  // Readable when there is a report, or when the shim has exited.
  int fd() const { return socket_.get(); }

  // Returns the next report. Unavailable: there is none yet. NotFound: the shim has exited.
  Result<ShimReport> Receive() const;
  // Like Receive, but waits for a report. Unavailable: none arrived within `at_most`.
  Result<ShimReport> Await(std::chrono::milliseconds at_most) const;

  // Sends SIGTERM to the process group of the program, and kills all its processes after `grace`.
  void Stop(std::chrono::milliseconds grace) const;

 private:
  ReplicaProcess(pid_t shim, FileDescriptor socket) : shim_(shim), socket_(std::move(socket)) {}

  pid_t shim_;
  FileDescriptor socket_;
};

// The main function of the shim, in the process that was forked for it. `agent` is its end of the
// socket.
[[noreturn]] void RunShim(const ProcessSpec& spec, FileDescriptor agent);

// Closes every descriptor except the standard ones and `kept`, which become 3, 4, ... in order.
void KeepOnly(std::vector<int*> kept);

}  // namespace edl::backend::local
