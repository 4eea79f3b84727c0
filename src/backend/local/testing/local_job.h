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

// Longest wait for what must come at once.
inline constexpr std::chrono::seconds kTimeout{20};

std::vector<std::string> Shell(const std::string& script);

// A job folder, and options for an agent whose master does nothing but live. At its end the agent
// has ended too.
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

// A named pipe by which a process of the job says that it has come to some point.
class Signpost {
 public:
  explicit Signpost(const std::filesystem::path& path);
  // "echo WORD > PATH": what the process's script is to do.
  std::string Pass(const std::string& word) const;
  // The next word. Empty: none came.
  std::string Await();

 private:
  std::filesystem::path path_;
  FileDescriptor pipe_;
  std::string read_;
};

// A word that occurs in no other process's command line: put it into a script to find the process.
std::string UniqueWord();

// Processes whose command line holds the word, each by a descriptor that outlives its number.
class Processes {
 public:
  static Processes With(const std::string& word);
  size_t size() const { return processes_.size(); }
  // False: one of them still lives after kTimeout.
  bool AwaitEnd() const;
  void Kill(int signal) const;

 private:
  struct Process {
    pid_t id;
    FileDescriptor pidfd;
  };
  std::vector<Process> processes_;
};

// Waits until the process is gone. False: it still lives after kTimeout.
bool AwaitEndOf(pid_t process);

// Runs `body` in a forked process, as `user` when given; what it returns comes back. An empty text
// means that all went well, anything else what did not.
std::string InChild(const std::function<std::string()>& body, std::optional<uid_t> user = {});

// Starts an agent from a client of its own, which then waits to be killed.
class Client {
 public:
  explicit Client(const AgentOptions& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  pid_t agent() const { return agent_; }  // 0: it could not be started
  void Kill();

 private:
  pid_t client_ = 0;
  pid_t agent_ = 0;
};

}  // namespace edl::backend::local
