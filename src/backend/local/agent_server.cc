#include "backend/local/agent_server.h"

#include <algorithm>
#include <array>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

namespace edl::backend::local {
namespace {

constexpr size_t kMaxConnections = 64;
// A peer that leaves more than this unread is disconnected.
constexpr size_t kMaxUnsent = size_t{64} << 20;

// Whether the peer is of the same user, according to the kernel. In a user namespace all other
// users appear as nobody. If the user of the job is nobody, only the mode of the folder keeps them
// out.
bool IsSameUser(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

}  // namespace

AgentServer::AgentServer(EventLoop& loop, Supervisor& supervisor, Attachment attachment)
    : loop_(loop), supervisor_(supervisor), attachment_(attachment) {
  supervisor_.SetOnEvent([this](const job::ReplicaEvent& event) {
    if (watcher_ == nullptr) return;
    Send(*watcher_, {.kind = Message::Kind::kEvent, .id = watcher_->watch, .event = event});
  });
}

AgentServer::~AgentServer() {
  attachment_ = Attachment::kDetached;  // closing the connections must not end the job now
  supervisor_.SetOnEvent(nullptr);
  if (listener_.valid()) loop_.Remove(listener_.get());
  while (!connections_.empty()) Drop(**connections_.begin());
}

Status AgentServer::Listen(int job_dir) {
  listener_ = FileDescriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.valid()) return Errno("making a socket");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  fmt::format_to_n(address.sun_path, sizeof(address.sun_path) - 1, "/proc/self/fd/{}/agent.sock",
                   job_dir);
  if (unlinkat(job_dir, "agent.sock", 0) != 0 && errno != ENOENT) {
    return Errno("removing an old agent.sock");
  }
  const mode_t mask = umask(0177);
  const int bound = bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  const int error = errno;
  umask(mask);
  if (bound != 0) return StatusFromErrno(error, "making agent.sock");
  if (listen(listener_.get(), 16) != 0) return Errno("listening on agent.sock");
  return loop_.Add(listener_.get(), POLLIN, [this] { Accept(); });
}

void AgentServer::Accept() {
  while (true) {
    FileDescriptor peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer.valid()) return;
    if (!IsSameUser(peer.get())) {
      LOG_WARNING("rejected a connection from a process of another user");
      continue;
    }
    if (connections_.size() >= kMaxConnections) {
      LOG_WARNING("rejected a connection: there are already {}", kMaxConnections);
      continue;
    }
    const Status added = Add(std::move(peer), Peer::kOther);
    if (!added.ok()) LOG_ERROR("cannot add a connection: {}", added.message());
  }
}

Status AgentServer::Hold(FileDescriptor lifeline) {
  return Add(std::move(lifeline), Peer::kClient);
}

Status AgentServer::Add(FileDescriptor socket, Peer peer) {
  auto connection = std::make_shared<Connection>();
  connection->socket = std::move(socket);
  connection->peer = peer;
  EDL_RETURN_IF_ERROR(
      loop_.Add(connection->socket.get(), POLLIN, [this, connection] { OnReady(*connection); }));
  connections_.insert(std::move(connection));
  return Ok();
}

void AgentServer::OnReady(Connection& connection) {
  if (!connection.output.empty()) Flush(connection);
  std::array<char, 65536> buffer;  // NOLINT: filled by recv
  while (connection.socket.valid()) {
    const ssize_t got = recv(connection.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return Drop(connection);
    const Status taken = connection.input.Append({buffer.data(), static_cast<size_t>(got)});
    if (!taken.ok()) {
      Send(connection, {.status = taken});
      return Drop(connection);
    }
    while (connection.socket.valid()) {
      const std::optional<std::string> line = connection.input.NextLine();
      if (!line.has_value()) break;
      Answer(connection, *line);
    }
  }
}

void AgentServer::Answer(Connection& connection, const std::string& line) {
  uint64_t id = 0;
  const Result<Request> request = ParseRequest(line, &id);
  if (!request.ok()) return Send(connection, {.id = id, .status = request.status()});
  Message reply = Do(connection, *request);
  reply.id = request->id;
  const bool good = reply.status.ok();
  Send(connection, reply);
  if (request->op == Op::kWatch && good) StartWatch(connection, request->id);
}

Message AgentServer::Do(Connection& connection, const Request& request) {
  switch (request.op) {
    case Op::kLaunch:
      return {.status = supervisor_.Launch(request.spec)};
    case Op::kStop:
      return {.status = supervisor_.Stop(request.name, request.grace)};
    case Op::kAcknowledge:
      return {.status = supervisor_.Acknowledge(request.name)};
    case Op::kAddress: {
      Result<std::string> address = supervisor_.AddressOf(request.role, request.index);
      if (!address.ok()) return {.status = address.status()};
      return {.address = *std::move(address)};
    }
    case Op::kWatch:
      return {};
    case Op::kDetach:
      if (connection.peer != Peer::kClient) {
        return {.status = FailedPrecondition("only the client that started the job can detach it")};
      }
      attachment_ = Attachment::kDetached;
      return {};
    case Op::kShutdown:
      supervisor_.Shutdown("stopped by the user");
      return {};
  }
  return {.status = Internal("unhandled operation {}", static_cast<int>(request.op))};
}

void AgentServer::StartWatch(Connection& connection, uint64_t id) {
  watcher_ = &connection;
  connection.watch = id;
  for (job::ReplicaEvent& event : supervisor_.Replicas()) {
    Send(connection, {.kind = Message::Kind::kEvent, .id = id, .event = std::move(event)});
  }
  Send(connection, {.kind = Message::Kind::kEvent,
                    .id = id,
                    .event = {.kind = job::ReplicaEvent::Kind::kSynced}});
}

void AgentServer::Send(Connection& connection, const Message& message) {
  connection.output += Encode(message);
  Flush(connection);
}

void AgentServer::Flush(Connection& connection) {
  if (!connection.socket.valid()) return;
  std::string& output = connection.output;
  size_t sent = 0;
  while (sent < output.size()) {
    const ssize_t now = send(connection.socket.get(), output.data() + sent, output.size() - sent,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) break;  // EAGAIN: later; for any other error, reading reports the end
    sent += static_cast<size_t>(now);
  }
  output.erase(0, sent);
  if (output.size() > kMaxUnsent) {
    LOG_ERROR("closing a connection whose peer does not read its messages");
    return Drop(connection);
  }
  loop_.Change(connection.socket.get(), output.empty() ? POLLIN : POLLIN | POLLOUT);
}

void AgentServer::Drop(Connection& connection) {
  if (!connection.socket.valid()) return;
  if (watcher_ == &connection) watcher_ = nullptr;
  const bool was_client = connection.peer == Peer::kClient;
  const auto found = std::find_if(connections_.begin(), connections_.end(),
                                  [&](const auto& known) { return known.get() == &connection; });
  const auto kept = connections_.extract(found);  // until this function returns
  loop_.Remove(connection.socket.get());
  connection.socket.Close();
  if (was_client && attachment_ == Attachment::kAttached && !supervisor_.ending()) {
    supervisor_.Shutdown("its client has exited");
  }
}

void AgentServer::SendEnd(const JobEnd& end) {
  for (const std::shared_ptr<Connection>& connection : connections_) {
    if (connection->peer == Peer::kClient) {
      return Send(*connection, {.kind = Message::Kind::kEnd, .end = end});
    }
  }
}

}  // namespace edl::backend::local
