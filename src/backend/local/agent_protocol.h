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

// What is said on agent.sock: JSON objects, one a line. A client sends Requests and gets one reply
// for each, with its id; events come to whoever watches.
namespace edl::backend::local {

enum class Op { kLaunch, kStop, kAcknowledge, kWatch, kAddress, kDetach, kShutdown };

struct Request {
  uint64_t id = 0;
  Op op = Op::kWatch;
  job::ReplicaSpec spec;                // kLaunch
  std::string name;                     // kStop, kAcknowledge
  std::chrono::milliseconds grace{0};   // kStop
  job::Role role = job::Role::kWorker;  // kAddress
  int index = 0;                        // kAddress
};

struct Message {
  enum class Kind { kReply, kEvent, kEnd };
  Kind kind = Kind::kReply;
  uint64_t id = 0;          // of the request; of an event: of the kWatch
  Status status;            // kReply
  std::string address;      // kReply to kAddress, and to the start of the agent
  bool isolation = false;   // the start failed only for want of namespaces: try with fewer
  job::ReplicaEvent event;  // kEvent
  JobEnd end;               // kEnd, the agent's last word to the client that started it
};

// InvalidArgument: a string in it is not UTF-8.
Result<std::string> Encode(const Request& request);
std::string Encode(const Message& message);

// InvalidArgument says what is wrong with the line; `id_if_known` gets the id for the reply.
Result<Request> ParseRequest(std::string_view line, uint64_t* id_if_known);
Result<Message> ParseMessage(std::string_view line);

// Cuts a stream of bytes into lines of bounded length. Confined.
class LineReader {
 public:
  static constexpr size_t kLongestLine = size_t{4} << 20;

  // InvalidArgument: a line is longer than that. Nothing more can be understood of this stream.
  Status Append(std::string_view bytes);
  std::optional<std::string> NextLine();

 private:
  std::string buffer_;
  size_t start_ = 0;     // of the first line not handed out
  size_t searched_ = 0;  // no newline before this
};

// A connection to the agent of `job_dir`. NotFound: no agent is there.
Result<FileDescriptor> ConnectToAgent(const std::filesystem::path& job_dir);
// Writes all, waiting if need be.
Status SendAll(int socket, std::string_view bytes);

}  // namespace edl::backend::local
