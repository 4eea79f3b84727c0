#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "backend/local/agent.h"
#include "base/file.h"
#include "base/status.h"
#include "job/replica.h"

// The protocol on agent.sock: JSON objects, one per line. A client sends Requests and receives one
// reply with the same id for each. The watching connection also receives events.
namespace edl::backend::local {

enum class Op { kLaunch, kStop, kAcknowledge, kWatch, kAddress, kDetach, kShutdown };

struct Request {
  uint64_t id = 0;
  Op op = Op::kWatch;
  job::ReplicaSpec spec;                // for kLaunch
  std::string name;                     // for kStop, kAcknowledge
  std::chrono::milliseconds grace{0};   // for kStop
  job::Role role = job::Role::kWorker;  // for kAddress
  int index = 0;                        // for kAddress
};

struct Message {
  enum class Kind { kReply, kEvent, kEnd };
  Kind kind = Kind::kReply;
  uint64_t id = 0;          // of the request; for an event: of the kWatch request
  Status status;            // for kReply
  std::string address;      // for replies to kAddress and to the start of the agent
  bool isolation = false;   // the start failed only because of namespaces: try fewer
  job::ReplicaEvent event;  // for kEvent
  JobEnd end;               // for kEnd, the last message to the client that started the agent
};

// InvalidArgument: a string in the request is not UTF-8.
Result<std::string> Encode(const Request& request);
std::string Encode(const Message& message);

// InvalidArgument: the message says what is wrong with the line. `id_if_known` receives the id for
// the reply.
Result<Request> ParseRequest(std::string_view line, uint64_t* id_if_known);
Result<Message> ParseMessage(std::string_view line);

// Splits a stream of bytes into lines of bounded length. Confined.
class LineReader {
 public:
  static constexpr size_t kLongestLine = size_t{4} << 20;

  // InvalidArgument: a line is longer than kLongestLine. The stream cannot be read any further.
  Status Append(std::string_view bytes);
  std::optional<std::string> NextLine();

 private:
  std::string buffer_;
  size_t start_ = 0;     // of the first line not returned yet
  size_t searched_ = 0;  // there is no newline before this
};

// Connects to the agent of `job_dir`. NotFound: no agent is running.
Result<FileDescriptor> ConnectToAgent(const std::filesystem::path& job_dir);
// Writes all bytes; blocks if necessary.
Status SendAll(int socket, std::string_view bytes);

}  // namespace edl::backend::local
