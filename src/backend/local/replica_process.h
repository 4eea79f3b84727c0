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

// One program to run, as the agent asks for it.
struct ProcessSpec {
  std::string log_name;
  std::vector<std::string> command;
  std::map<std::string, std::string> env;  // over the inherited environment
  std::string process_id_variable;         // set to the id that users see; empty: none is
  std::filesystem::path log_dir;
  int64_t log_limit_bytes = 0;
  std::filesystem::path cgroup;  // to enter; empty: none
  int outer_proc = -1;           // /proc of the users' PID namespace
  rlimit open_files{};           // as the client had it
};

// What the shim of a process tells the agent.
struct ShimReport {
  enum class Kind : int32_t { kStarted, kNotStarted, kExited };
  Kind kind = Kind::kStarted;
  int32_t error = 0;        // kNotStarted: errno
  int32_t wait_status = 0;  // kExited: as waitpid gives it
  int32_t in_cgroup = 0;    // kStarted: whether it could enter its cgroup
  int64_t process_id = 0;   // kStarted: as the user sees it
};

// What the agent tells the shim.
struct ShimOrder {
  int64_t grace_ms = 0;  // SIGTERM now, SIGKILL after this
};

// A program that the agent runs. Between the two stands a *shim*: a small process that is the
// program's parent, writes its output to the log, and takes in its orphans (subreaper), so that,
// when the program has ended, everything that it left behind is found and ended too, whatever
// session it has moved to; only then is the exit told. The shim ends all of it as well when the
// agent is gone.
//
// Confined to the agent's loop.
class ReplicaProcess {
 public:
  static Result<ReplicaProcess> Start(const ProcessSpec& spec);

  pid_t shim() const { return shim_; }
  // Readable when there is a report, or the end of all reports.
  int fd() const { return socket_.get(); }

  // Unavailable: none yet. NotFound: the shim has ended and none will come.
  Result<ShimReport> Receive() const;
  // Waits for the next one.
  Result<ShimReport> Await(std::chrono::milliseconds at_most) const;

  // SIGTERM to the program's process group, SIGKILL to all of it after `grace`.
  void Stop(std::chrono::milliseconds grace) const;

 private:
  ReplicaProcess(pid_t shim, FileDescriptor socket) : shim_(shim), socket_(std::move(socket)) {}

  pid_t shim_;
  FileDescriptor socket_;
};

// The shim's whole life, in the process that was forked for it. `agent` is its end of the socket.
[[noreturn]] void RunShim(const ProcessSpec& spec, FileDescriptor agent);

// Closes every descriptor but standard ones and `kept`, which are moved to 3, 4, ... in order.
void KeepOnly(std::vector<int*> kept);

}  // namespace edl::backend::local
