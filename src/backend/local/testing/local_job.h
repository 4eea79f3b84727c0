#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "backend/local/agent.h"
#include "backend/local/local_backend.h"
#include "base/file.h"
#include "base/testing/temporary_folder.h"

namespace edl::backend::local {

// Timeout of waits for events that normally happen immediately.
inline constexpr std::chrono::seconds kTimeout{20};

std::vector<std::string> Shell(const std::string& script);

// A job folder, and options for an agent whose master only sleeps. The destructor ends the agent.
class LocalJob {
 public:
  LocalJob();
  ~LocalJob();
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;

  AgentOptions& options() { return options_; }
  std::filesystem::path path() const { return folder_.path(); }
  std::filesystem::path job_dir() const { return folder_.path() / "job"; }
  std::string ReadLogOf(const std::string& name) const;

 private:
  TemporaryFolder folder_;
  AgentOptions options_;
};

// A named pipe with which a process of the job reports that it has reached some point.
class Signpost {
 public:
  explicit Signpost(const std::filesystem::path& path);
  // The shell command "echo WORD > PATH", for the script of the process.
  std::string Pass(const std::string& word) const;
  // Waits for the next word. Returns "" and fails the test if none arrives.
  std::string Await();

 private:
  std::filesystem::path path_;
  FileDescriptor pipe_;
  std::string read_;
};

// A word that occurs in no other command line: put it into a script to find its process.
std::string UniqueWord();

// The processes whose command line contains the word, by pidfd, so that reused ids do not matter.
class Processes {
 public:
  static Processes With(const std::string& word);
  size_t size() const { return processes_.size(); }
  // DeadlineExceeded: one of them still runs after kTimeout.
  Status AwaitEnd() const;
  void Kill(int signal) const;

 private:
  struct Process {
    pid_t id;
    FileDescriptor pidfd;
  };
  std::vector<Process> processes_;
};

// Waits until the process has exited. DeadlineExceeded: it still runs after kTimeout.
Status AwaitEndOf(pid_t process);

// Runs `body` in a forked process, as `user` if given, and returns its result. By convention an
// empty text means success, and any other text describes a failure.
std::string InChild(const std::function<std::string()>& body, std::optional<uid_t> user = {});

// Starts an agent from a separate client process, which then waits to be killed.
class Client {
 public:
  explicit Client(const AgentOptions& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  pid_t agent() const { return agent_; }  // 0 if it could not be started
  void Kill();

 private:
  pid_t client_ = 0;
  pid_t agent_ = 0;
};

}  // namespace edl::backend::local
