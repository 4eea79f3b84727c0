#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "backend/local/agent_protocol.h"
#include "backend/local/supervisor.h"
#include "base/event_loop.h"
#include "base/file.h"
#include "base/status.h"

namespace edl::backend::local {

// Whether the job goes on without its client.
enum class Attachment { kAttached, kDetached };

// The agent's server: takes requests from agent.sock and from the client that started the agent,
// and hands them to the supervisor. Bad requests get an error, never more.
//
// Confined to the agent's loop.
class AgentServer {
 public:
  // Loop and supervisor outlive it.
  AgentServer(EventLoop& loop, Supervisor& supervisor, Attachment attachment);
  ~AgentServer();

  // Listens on agent.sock in the folder that `job_dir` is a descriptor of.
  Status Listen(int job_dir);
  // The connection to the client that started the agent: unless detached, its end ends the job.
  Status Hold(FileDescriptor lifeline);
  // The agent's last word to that client.
  void TellEnd(const JobEnd& end);

 private:
  struct Connection {
    FileDescriptor socket;
    LineReader input;
    std::string output;  // what the peer has not taken yet
    uint64_t watch = 0;  // id of its request, 0: does not watch
    bool is_lifeline = false;
  };

  void Accept();
  Status Add(FileDescriptor socket, bool is_lifeline);
  void OnReady(Connection& connection);
  void Answer(Connection& connection, const std::string& line);
  Message Do(Connection& connection, const Request& request);
  void StartWatch(Connection& connection, uint64_t id);
  void Send(Connection& connection, const Message& message);
  void Flush(Connection& connection);
  void Drop(Connection& connection);

  EventLoop& loop_;
  Supervisor& supervisor_;
  Attachment attachment_;
  FileDescriptor listener_;
  // Shared with the loop's callback, so that a connection may drop itself.
  std::set<std::shared_ptr<Connection>> connections_;
  Connection* watcher_ = nullptr;
};

}  // namespace edl::backend::local
