#include "backend/local/agent_protocol.h"

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/utf8.h"

namespace edl::backend::local {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<Op, const char*>, 7> kOps = {{{Op::kLaunch, "launch"},
                                                             {Op::kStop, "stop"},
                                                             {Op::kAcknowledge, "acknowledge"},
                                                             {Op::kWatch, "watch"},
                                                             {Op::kAddress, "address"},
                                                             {Op::kDetach, "detach"},
                                                             {Op::kShutdown, "shutdown"}}};
using EventKind = job::ReplicaEvent::Kind;
constexpr std::array<std::pair<EventKind, const char*>, 4> kEventKinds = {
    {{EventKind::kPending, "pending"},
     {EventKind::kRunning, "running"},
     {EventKind::kExited, "exited"},
     {EventKind::kSynced, "synced"}}};
using CauseKind = job::ExitCause::Kind;
constexpr std::array<std::pair<CauseKind, const char*>, 5> kCauseKinds = {
    {{CauseKind::kSucceeded, "succeeded"},
     {CauseKind::kFailed, "failed"},
     {CauseKind::kKilled, "killed"},
     {CauseKind::kOutOfMemory, "out_of_memory"},
     {CauseKind::kNotLaunched, "not_launched"}}};

template <typename Enum, size_t kCount>
const char* WordOf(const std::array<std::pair<Enum, const char*>, kCount>& words, Enum value) {
  for (const auto& [known, word] : words) {
    if (known == value) return word;
  }
  return "?";
}

template <typename Enum, size_t kCount>
std::optional<Enum> FromWord(const std::array<std::pair<Enum, const char*>, kCount>& words,
                             std::string_view word) {
  for (const auto& [value, known] : words) {
    if (word == known) return value;
  }
  return std::nullopt;
}

template <typename Enum, size_t kCount>
Enum Word(JsonFields& fields, const char* name,
          const std::array<std::pair<Enum, const char*>, kCount>& words) {
  const std::string word = fields.Text(name);
  const std::optional<Enum> value = FromWord(words, word);
  if (!value.has_value()) {
    std::vector<std::string_view> known;
    for (const auto& entry : words) known.emplace_back(entry.second);
    fields.Fail(InvalidArgument("field '{}' has the unknown value '{}'; expected one of {}", name,
                                word, fmt::join(known, ", ")));
  }
  return value.value_or(words.front().first);
}

job::Role RoleIn(JsonFields& fields) {
  const std::string word = fields.Text("role");
  const std::optional<job::Role> role = job::RoleFromName(word);
  if (!role.has_value())
    fields.Fail(
        InvalidArgument("field 'role' has the unknown value '{}'; expected the name of a "
                        "role, such as worker",
                        word));
  return role.value_or(job::Role::kWorker);
}

Json ToJson(const job::ReplicaSpec& spec) {
  return {{"name", spec.name},
          {"role", job::NameOf(spec.role)},
          {"index", spec.index},
          {"id", spec.id},
          {"command", spec.command},
          {"env", spec.env},
          {"memory_limit_bytes", spec.memory_limit_bytes}};
}

Result<job::ReplicaSpec> SpecFromJson(const Json& json) {
  constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
  JsonFields fields(json, "the replica's spec");
  job::ReplicaSpec spec{.name = fields.Text("name"),
                        .role = RoleIn(fields),
                        .index = static_cast<int>(fields.Integer("index", 0, kMaxInt)),
                        .id = fields.Integer("id", 0),
                        .command = fields.Texts("command"),
                        .env = fields.TextMap("env"),
                        .memory_limit_bytes = fields.Integer("memory_limit_bytes", 0)};
  EDL_RETURN_IF_ERROR(fields.status());
  return spec;
}

Json ToJson(const job::ReplicaEvent& event) {
  Json json = {{"name", event.name}, {"kind", WordOf(kEventKinds, event.kind)}};
  if (event.kind == EventKind::kRunning) json["process_id"] = event.process_id;
  if (event.kind == EventKind::kPending) json["reason"] = event.reason;
  if (event.kind == EventKind::kExited) {
    json["cause"] = {{"kind", WordOf(kCauseKinds, event.cause.kind)},
                     {"exit_code", event.cause.exit_code},
                     {"signal", event.cause.signal},
                     {"message", event.cause.message}};
  }
  return json;
}

Result<job::ReplicaEvent> EventFromJson(const Json& json) {
  JsonFields fields(json, "the event");
  job::ReplicaEvent event{.name = fields.Text("name"),
                          .kind = Word(fields, "kind", kEventKinds),
                          .process_id = fields.Integer("process_id"),
                          .reason = fields.Text("reason")};
  if (event.kind == EventKind::kExited) {
    JsonFields cause(fields.Object("cause"), "the cause");
    event.cause = {.kind = Word(cause, "kind", kCauseKinds),
                   .exit_code = static_cast<int>(cause.Integer("exit_code", -256, 256)),
                   .signal = static_cast<int>(cause.Integer("signal", 0, 128)),
                   .message = cause.Text("message")};
    EDL_RETURN_IF_ERROR(cause.status());
  }
  EDL_RETURN_IF_ERROR(fields.status());
  return event;
}

bool HasOnlyUtf8(const Json& json) {
  if (json.is_string()) return IsUtf8(json.get_ref<const std::string&>());
  if (!json.is_structured()) return true;
  for (const auto& [key, value] : json.items()) {
    if (!IsUtf8(key) || !HasOnlyUtf8(value)) return false;
  }
  return true;
}

std::string Line(const Json& json) { return Dump(json) + "\n"; }

Result<Json> ParseObject(std::string_view line) {
  Json json = ReadJson(line);
  if (json.is_discarded() || !json.is_object()) {
    return InvalidArgument("expected a JSON object, found '{}'", line.substr(0, 80));
  }
  return json;
}

}  // namespace

Result<std::string> Encode(const Request& request) {
  Json json = {{"id", request.id}, {"op", WordOf(kOps, request.op)}};
  switch (request.op) {
    case Op::kLaunch:
      json["spec"] = ToJson(request.spec);
      break;
    case Op::kStop:
      json["name"] = request.name;
      json["grace_ms"] = request.grace.count();
      break;
    case Op::kAcknowledge:
      json["name"] = request.name;
      break;
    case Op::kAddress:
      json["role"] = job::NameOf(request.role);
      json["index"] = request.index;
      break;
    case Op::kWatch:
    case Op::kDetach:
    case Op::kShutdown:
      break;
  }
  if (!HasOnlyUtf8(json)) {
    return InvalidArgument("the command, the environment or the name of replica '{}' is not UTF-8",
                           request.spec.name + request.name);
  }
  return Line(json);
}

std::string Encode(const Message& message) {
  switch (message.kind) {
    case Message::Kind::kEvent:
      return Line({{"watch", message.id}, {"event", ToJson(message.event)}});
    case Message::Kind::kEnd:
      return Line(
          {{"end", {{"exit_code", message.end.exit_code}, {"reason", message.end.reason}}}});
    case Message::Kind::kReply:
      break;
  }
  Json json = {{"id", message.id}, {"code", static_cast<int>(message.status.code())}};
  if (!message.status.ok()) json["message"] = message.status.message();
  if (!message.address.empty()) json["address"] = message.address;
  if (message.isolation) json["isolation"] = true;
  return Line(json);
}

Result<Request> ParseRequest(std::string_view line, uint64_t* id_if_known) {
  EDL_ASSIGN_OR_RETURN(const Json json, ParseObject(line));
  JsonFields fields(json, "the request");
  Request request;
  request.id = static_cast<uint64_t>(fields.Integer("id", 0));
  *id_if_known = request.id;
  request.op = Word(fields, "op", kOps);
  EDL_RETURN_IF_ERROR(fields.status());
  switch (request.op) {
    case Op::kLaunch: {
      EDL_ASSIGN_OR_RETURN(request.spec, SpecFromJson(fields.Object("spec")));
      break;
    }
    case Op::kStop:
      request.name = fields.Text("name");
      request.grace = std::chrono::milliseconds(fields.Integer("grace_ms", 0, int64_t{1} << 40));
      break;
    case Op::kAcknowledge:
      request.name = fields.Text("name");
      break;
    case Op::kAddress:
      request.role = RoleIn(fields);
      request.index = static_cast<int>(fields.Integer("index", 0, 1'000'000));
      break;
    case Op::kWatch:
    case Op::kDetach:
    case Op::kShutdown:
      break;
  }
  EDL_RETURN_IF_ERROR(fields.status());
  return request;
}

Result<Message> ParseMessage(std::string_view line) {
  EDL_ASSIGN_OR_RETURN(const Json json, ParseObject(line));
  JsonFields fields(json, "the message");
  Message message;
  if (json.contains("event")) {
    message.kind = Message::Kind::kEvent;
    message.id = static_cast<uint64_t>(fields.Integer("watch", 0));
    EDL_ASSIGN_OR_RETURN(message.event, EventFromJson(fields.Object("event")));
  } else if (json.contains("end")) {
    message.kind = Message::Kind::kEnd;
    JsonFields end(fields.Object("end"), "the end");
    message.end = {.exit_code = static_cast<int>(end.Integer("exit_code", 0, 255)),
                   .reason = end.Text("reason")};
    EDL_RETURN_IF_ERROR(end.status());
  } else {
    message.id = static_cast<uint64_t>(fields.Integer("id", 0));
    message.status =
        Status(static_cast<Code>(fields.Integer("code", 0, 16)), fields.Text("message"));
    message.address = fields.Text("address");
    message.isolation = fields.Flag("isolation");
  }
  EDL_RETURN_IF_ERROR(fields.status());
  return message;
}

Status LineReader::Append(std::string_view bytes) {
  if (start_ > 0) {
    buffer_.erase(0, start_);
    searched_ -= start_;
    start_ = 0;
  }
  buffer_ += bytes;
  if (buffer_.size() > kLongestLine && buffer_.find('\n', searched_) > kLongestLine) {
    return InvalidArgument("a line is longer than {} bytes", kLongestLine);
  }
  return Ok();
}

std::optional<std::string> LineReader::NextLine() {
  const size_t newline = buffer_.find('\n', std::max(searched_, start_));
  if (newline == std::string::npos) {
    searched_ = buffer_.size();
    return std::nullopt;
  }
  std::string line = buffer_.substr(start_, newline - start_);
  start_ = newline + 1;
  searched_ = start_;
  return line;
}

Result<FileDescriptor> ConnectToAgent(const std::filesystem::path& job_dir) {
  const FileDescriptor dir(open(job_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return Errno("opening the job folder {}", job_dir.string());
  FileDescriptor connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection.valid()) return Errno("making a socket");
  // Uses the descriptor of the folder, because the path of a socket is limited to 108 bytes.
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  fmt::format_to_n(address.sun_path, sizeof(address.sun_path) - 1, "/proc/self/fd/{}/agent.sock",
                   dir.get());
  if (connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    return connection;
  }
  if (errno == ENOENT || errno == ECONNREFUSED) {
    return NotFound("no agent is running for the job in {}", job_dir.string());
  }
  return Errno("connecting to {}/agent.sock", job_dir.string());
}

Status SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Errno("sending to the agent");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return Ok();
}

}  // namespace edl::backend::local
