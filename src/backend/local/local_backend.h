#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "backend/backend.h"
#include "backend/event_dispatcher.h"
#include "base/file.h"
#include "base/mutex.h"

namespace edl::backend::local {

struct Request;
struct Message;

// Runs replicas on this machine through the agent of the job. The watcher may call it. After the
// connection to the agent is lost, every call returns Unavailable.
//
// Thread-safe.
class LocalBackend final : public Backend {
 public:
  struct Options {
    // Timeout of a call, far longer than the agent needs.
    std::chrono::milliseconds timeout{30'000};
    // Called once, on a thread of the backend, when the agent has closed the connection. A master
    // exits then: the agent, if it is alive, starts another one, which connects again.
    std::function<void()> on_lost;
  };

  // Connects to the agent of the job in `job_dir`. NotFound, Unavailable: no agent is running.
  static Result<std::unique_ptr<LocalBackend>> Connect(const std::filesystem::path& job_dir,
                                                       Options options);
  static Result<std::unique_ptr<LocalBackend>> Connect(const std::filesystem::path& job_dir) {
    return Connect(job_dir, {});
  }
  ~LocalBackend() override;

  Status Launch(const job::ReplicaSpec& spec) override;
  Status Stop(const std::string& name, std::chrono::milliseconds grace) override;
  void Watch(std::function<void(const job::ReplicaEvent&)> on_event) override;
  Status Acknowledge(const std::string& name) override;
  Result<LogPiece> Logs(const std::string& name, int64_t offset, int64_t at_most) override;
  Result<std::string> AddressOf(job::Role role, int index) override;

 private:
  LocalBackend(std::filesystem::path job_dir, Options options, FileDescriptor socket);

  Result<Message> Call(Request request);
  Status Send(const Request& request);
  void Read();
  void Take(Message message);

  const std::filesystem::path job_dir_;
  const Options options_;
  const FileDescriptor socket_;
  Mutex write_mutex_;  // one request at a time on the socket

  Mutex mutex_;
  CondVar changed_;
  uint64_t next_id_ GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, std::unique_ptr<Message>> replies_
      GUARDED_BY(mutex_);                         // null: not received yet
  uint64_t watch_ GUARDED_BY(mutex_) = 0;         // id of the last Watch
  bool disconnected_ GUARDED_BY(mutex_) = false;  // the agent closed the connection
  bool ending_ GUARDED_BY(mutex_) = false;        // the destructor runs

  EventDispatcher dispatcher_;  // not the reader, so that a watcher may call the backend
  std::thread reader_;
};

}  // namespace edl::backend::local
