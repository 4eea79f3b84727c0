#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/role.h"
#include "job/volume.h"

namespace edl::job {

// What a job may have at most, whoever asks for it.
inline constexpr int kMostWorkers = 100'000;

// One member of a role as a backend is to launch it. Its name is unique within the job and never
// used twice: the id in it numbers launches within the role.
struct ReplicaSpec {
  std::string name;  // "test-iris-edljob-worker-0"
  Role role = Role::kWorker;
  int index = 0;                           // the slot, kept over relaunches
  int64_t id = 0;                          // the launch within the role
  std::vector<std::string> command;        // an argument vector, no shell in between
  std::map<std::string, std::string> env;  // added to what the backend gives by itself
  std::vector<Volume> volumes;
  int64_t memory_limit_bytes = 0;  // 0: none
};

// Why a replica is no more. Only this decides on a relaunch (docs/states/replica.md).
struct ExitCause {
  enum class Kind {
    kSucceeded,    // exit code 0
    kFailed,       // another exit code, or a signal of its own making (SIGSEGV, SIGABRT, ...)
    kKilled,       // SIGKILL or SIGTERM from outside, not for memory: preempted, deleted
    kOutOfMemory,  // by the kernel's or the container's word, not by the code
    kNotLaunched,  // the backend could not start it
  };
  Kind kind = Kind::kSucceeded;
  int exit_code = 0;    // of a normal exit
  int signal = 0;       // 0: none
  std::string message;  // for people: "exit code 3", "killed by SIGKILL"
};
std::string_view NameOf(ExitCause::Kind kind);

// What a backend tells about a replica. Exits are told until they are acknowledged.
struct ReplicaEvent {
  enum class Kind {
    kPending,
    kRunning,
    kExited,
    kSynced,  // no replica: all that there are have been told to this watcher
  };
  std::string name;
  Kind kind = Kind::kPending;
  int64_t process_id = 0;  // kRunning: as the user sees it, 0 when there is none
  std::string host;        // kRunning: its address, where it has one of its own
  // kRunning: the backend has lost contact with the node. It says nothing about the replica itself.
  bool node_lost = false;
  ExitCause cause;     // kExited
  std::string reason;  // kPending: why it waits
};

}  // namespace edl::job
