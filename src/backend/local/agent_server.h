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

// Whether the job continues without its client.
enum class Attachment { kAttached, kDetached };

// The server of the agent: receives requests on agent.sock and from the client that started the
// agent, and passes them to the supervisor. An invalid request only gets an error reply.
//
// Confined to the agent's loop.
class AgentServer {
 public:
  // Loop and supervisor outlive this.
  AgentServer(EventLoop& loop, Supervisor& supervisor, Attachment attachment);
  ~AgentServer();

  // Listens on agent.sock in the folder with the descriptor `job_dir`.
  Status Listen(int job_dir);
  // Takes the connection to the client that started the agent. Unless detached, its end ends the
  // job.
  Status Hold(FileDescriptor lifeline);
  // Sends the last message to that client.
  void SendEnd(const JobEnd& end);

 private:
  // The client that started the agent, or any other process of the user.
  enum class Peer { kClient, kOther };

  struct Connection {
    FileDescriptor socket;
    LineReader input;
    std::string output;  // not sent yet
    uint64_t watch = 0;  // id of its kWatch request; 0: it does not watch
    Peer peer = Peer::kOther;
  };

  void Accept();
  Status Add(FileDescriptor socket, Peer peer);
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
  // Shared with the callback of the loop, so that a connection can drop itself.
  std::set<std::shared_ptr<Connection>> connections_;
  Connection* watcher_ = nullptr;
};

}  // namespace edl::backend::local
