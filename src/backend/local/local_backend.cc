#include "backend/local/local_backend.h"

#include <array>
#include <utility>

#include <sys/socket.h>

#include "backend/local/agent_protocol.h"
#include "backend/local/log_file.h"
#include "base/log.h"

namespace edl::backend::local {
Result<std::unique_ptr<LocalBackend>> LocalBackend::Connect(const std::filesystem::path& job_dir,
                                                            Options options) {
  EDL_ASSIGN_OR_RETURN(FileDescriptor socket, ConnectToAgent(job_dir));
  return std::unique_ptr<LocalBackend>(
      new LocalBackend(job_dir, std::move(options), std::move(socket)));
}

LocalBackend::LocalBackend(std::filesystem::path job_dir, Options options, FileDescriptor socket)
    : job_dir_(std::move(job_dir)),
      options_(std::move(options)),
      socket_(std::move(socket)),
      reader_([this] { Read(); }) {}

LocalBackend::~LocalBackend() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  shutdown(socket_.get(), SHUT_RDWR);
  reader_.join();
}

Status LocalBackend::Launch(const job::ReplicaSpec& spec) {
  Status launched = Call({.op = Op::kLaunch, .spec = spec}).status();
  if (launched.code() == Code::kDeadlineExceeded) {
    // The agent handles requests in order: if it reads the launch after all, the stop follows.
    (void)Send({.op = Op::kStop, .name = spec.name});
  }
  return launched;
}

Status LocalBackend::Stop(const std::string& name, std::chrono::milliseconds grace) {
  return Call({.op = Op::kStop, .name = name, .grace = grace}).status();
}

Status LocalBackend::Acknowledge(const std::string& name) {
  return Call({.op = Op::kAcknowledge, .name = name}).status();
}

Result<std::string> LocalBackend::AddressOf(job::Role role, int index) {
  EDL_ASSIGN_OR_RETURN(Message reply, Call({.op = Op::kAddress, .role = role, .index = index}));
  return std::move(reply.address);
}

Result<LogPiece> LocalBackend::Logs(const std::string& name, int64_t offset, int64_t at_most) {
  if (name.empty() || name.find('/') != std::string::npos) {
    return NotFound("replica '{}' does not exist", name);
  }
  return ReadLog(job_dir_ / "logs", name, offset, at_most);
}

void LocalBackend::Watch(std::function<void(const job::ReplicaEvent&)> on_event) {
  Request request{.op = Op::kWatch};
  {
    const MutexLock lock(mutex_);
    request.id = next_id_++;
    watch_ = request.id;
    dispatcher_.Watch(std::move(on_event), {});
  }
  const Status watched = Call(std::move(request)).status();
  if (!watched.ok()) LOG_ERROR("cannot watch the replicas: {}", watched.message());
}

Status LocalBackend::Send(const Request& request) {
  EDL_ASSIGN_OR_RETURN(const std::string line, Encode(request));
  if (line.size() > LineReader::kLongestLine) {
    return InvalidArgument(
        "the command and the environment of replica '{}' have {} bytes, more than the maximum "
        "of {}; shorten --envs or --job_command",
        request.spec.name, line.size(), LineReader::kLongestLine);
  }
  const MutexLock lock(write_mutex_);
  return SendAll(socket_.get(), line);
}

Result<Message> LocalBackend::Call(Request request) {
  // Not an injected clock: the agent is a real process, and a condition variable waits in real
  // time.
  const auto deadline = std::chrono::steady_clock::now() + options_.timeout;
  {
    const MutexLock lock(mutex_);
    if (request.id == 0) request.id = next_id_++;
    replies_[request.id] = nullptr;
  }
  const Status sent = Send(request);
  const MutexLock lock(mutex_);
  std::unique_ptr<Message>& reply = replies_[request.id];
  bool in_time = true;
  while (sent.ok() && in_time && !disconnected_ && reply == nullptr) {
    in_time = changed_.WaitUntil(mutex_, deadline);
  }
  const std::unique_ptr<Message> got = std::move(reply);
  replies_.erase(request.id);
  if (got != nullptr) return got->status.ok() ? Result<Message>(std::move(*got)) : got->status;
  if (sent.code() == Code::kInvalidArgument) return sent;
  if (disconnected_ || !sent.ok()) {
    return Unavailable("the agent of the job in {} closed the connection", job_dir_.string());
  }
  return DeadlineExceeded("the agent of the job in {} did not answer for {} ms", job_dir_.string(),
                          options_.timeout.count());
}

void LocalBackend::Read() {
  LineReader reader;
  std::array<char, 65536> buffer;  // NOLINT: filled by recv
  while (true) {
    const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || !reader.Append({buffer.data(), static_cast<size_t>(got)}).ok()) break;
    while (const std::optional<std::string> line = reader.NextLine()) {
      Result<Message> message = ParseMessage(*line);
      if (message.ok()) {
        Take(*std::move(message));
      } else {
        LOG_ERROR("ignoring an invalid message of the agent: {}", message.status().message());
      }
    }
  }
  bool lost = false;
  {
    const MutexLock lock(mutex_);
    disconnected_ = true;
    lost = !ending_;
    changed_.NotifyAll();
  }
  if (lost && options_.on_lost) options_.on_lost();
}

void LocalBackend::Take(Message message) {
  const MutexLock lock(mutex_);
  if (message.kind == Message::Kind::kEvent) {
    // Drops events that were sent for the previous watcher.
    if (message.id != watch_) return;
    dispatcher_.Notify(std::move(message.event));
  } else {
    const auto awaited = replies_.find(message.id);
    if (awaited == replies_.end()) return;  // the caller has timed out
    awaited->second = std::make_unique<Message>(std::move(message));
  }
  changed_.NotifyAll();
}

}  // namespace edl::backend::local
