#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <sys/uio.h>

#include "base/clock.h"
#include "base/status.h"
#include "wire/frame.h"
#include "wire/messages.h"
#include "wire/stream.h"

namespace edl::ps_client {

// Pieces of memory, one after the other as the tensor part of a frame, each followed by its
// padding. They stay the caller's.
class Tensors {
 public:
  void Add(const void* data, size_t bytes);
  // Continues the tensor that was begun: no padding lies between.
  void Continue(const void* data, size_t bytes);
  // Pads what was continued.
  void End();

  const std::vector<iovec>& pieces() const { return pieces_; }
  size_t bytes() const { return bytes_; }

 private:
  std::vector<iovec> pieces_;
  size_t bytes_ = 0;
};

// A message to a lane and the answer to it.
struct Request {
  wire::MessageType type = wire::MessageType::kHello;
  std::string meta;
  Tensors tensors;
  Tensors rooms;  // where the tensor part of the answer belongs; it must be as long

  // From here on written by the link.
  bool done = false;
  Status status;             // other than Ok: the refusal
  std::string answer;        // its meta part
  uint64_t incarnation = 0;  // of the server that gave it
};

struct LinkOptions {
  std::string host;
  uint16_t port = 0;
  std::string token;
  std::string caller;
  uint32_t lane = 0;
  uint32_t place = 0;
  uint32_t lanes = 0;
  bool shared_memory = false;  // else TCP
  wire::FrameLimits limits;
};

// A client's connection to one lane: sends requests and receives their answers, in order. When it
// is lost it can be made again, and all that was not answered is sent once more; who pushes marks
// its batches, so nothing is applied twice by it. Never blocks, but for Connect. Confined.
class Link {
 public:
  explicit Link(LinkOptions options) : options_(std::move(options)) {}

  // Dials, and has all that is not answered sent again. Fails like wire::ConnectTcp.
  Status Connect(Duration patience);
  bool connected() const { return stream_ != nullptr; }
  // What will be said on each new connection before all else, and on this one now.
  void Declare(std::string text);

  // It stays the caller's, at its place, until it is done or given up.
  void Send(Request& request) { queue_.push_back(&request); }
  // Forgets all that is not answered; it fails with `why`.
  void GiveUp(const Status& why);

  // Sends and receives what it can without waiting. Unavailable, DataLoss: the connection was lost.
  // Others: the lane will not have us, and another attempt is in vain.
  Status Pump();
  bool idle() const { return queue_.empty(); }
  // What to poll for.
  int fd() const { return stream_->fd(); }
  short events() const;
  void Woken() { stream_->Woken(); }
  const LinkOptions& options() const { return options_; }
  // What the lane said of its server, once it has answered.
  const wire::Welcome& welcome() const { return welcome_; }

 private:
  // The request that is being sent.
  struct Sending {
    std::string head;  // header, meta part and its padding
    std::vector<iovec> left;
  };
  // The answer that is being received.
  struct Receiving {
    std::array<std::byte, wire::FrameHeader::kBytes> bytes{};
    wire::FrameHeader header;
    bool has_header = false;
    bool in_place = false;  // the tensors go where the request says
    wire::Buffer front;     // meta part and its padding, or the whole body
    std::vector<iovec> left;
  };

  void Lose();
  Status Write();
  void BeginSending(const Request& request);
  Status Read();
  Status BeginReceiving();
  Status FinishReceiving();

  const LinkOptions options_;
  std::unique_ptr<wire::Stream> stream_;
  std::deque<Request*> queue_;  // not answered; the first `sent_` were sent
  size_t sent_ = 0;
  uint64_t next_number_ = 1;     // of the next to be sent
  uint64_t awaited_number_ = 1;  // of the first in the queue
  std::unique_ptr<Sending> sending_;
  Receiving receiving_;
  Request hello_;
  Request declare_;
  bool declares_ = false;
  wire::Welcome welcome_;
};

}  // namespace edl::ps_client
