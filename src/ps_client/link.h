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
  Tensors buffers;  // where the tensor part of the answer belongs; it must be as long

  // Counted down when the request is done; outlives it. Null: nobody counts.
  size_t* remaining = nullptr;

  // From here on written by the link.
  bool done = false;
  Status status;             // other than Ok: the refusal
  std::string answer;        // its meta part
  uint64_t incarnation = 0;  // of the server that gave it

  void Finish() {
    done = true;
    if (remaining != nullptr) --*remaining;
  }
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

// A client's connection to one lane: sends requests and receives their answers, in order. When the
// connection is lost, Connect or Adopt makes another one, and every request without an answer is
// sent again. Batches are counted by the lane, so no batch is applied twice. Confined.
class Link {
 public:
  explicit Link(LinkOptions options) : options_(std::move(options)) {}

  // Blocks until it is connected. Fails like wire::ConnectTcp.
  Status Connect(Duration timeout);
  // Goes on with this stream: says Hello, then sends all requests without an answer.
  void Attach(std::unique_ptr<wire::Stream> stream);
  // Takes over the stream of another link to the same lane, which has only said Hello and was
  // welcomed.
  void Adopt(Link& greeted);
  // Closes the connection. Requests without an answer stay.
  void Lose();
  bool connected() const { return stream_ != nullptr; }
  // Sends this declaration first on each new connection, and on the present one now.
  void Declare(std::string text);

  // The request stays the caller's, at its place, until it is done or given up.
  void Send(Request& request) { queue_.push_back(&request); }
  // Fails all requests without an answer with `why`, and closes the connection.
  void GiveUp(const Status& why);

  // Sends and receives what it can without waiting. Unavailable, DataLoss: the connection is lost;
  // the caller closes it with Lose(). Others: the lane refuses this client, and another attempt is
  // in vain.
  Status Pump();
  // True: no request waits for its answer.
  bool idle() const { return queue_.empty(); }
  // True: something is left to be sent.
  bool has_unsent() const { return sending_ != nullptr || sent_ < queue_.size(); }
  // What to poll for.
  int fd() const { return stream_->fd(); }
  short events() const;
  void OnReady() { stream_->OnReady(); }
  const LinkOptions& options() const { return options_; }
  // True once the lane has answered the Hello of this connection.
  bool greeted() const { return stream_ != nullptr && hello_.done && hello_.status.ok(); }
  // What the lane said of its server, once it has answered.
  const wire::Welcome& welcome() const { return welcome_; }

  // Bytes that came or went, ever. It grows while the peer takes or sends anything.
  uint64_t traffic() const { return traffic_; }
  // The same for the caller's requests alone: neither Hello and Declare count, nor what is sent
  // again after a loss. It stands still while a server is only dialled again and again.
  uint64_t progress() const { return progress_; }

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

  bool IsOwn(const Request* request) const { return request == &hello_ || request == &declare_; }
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
  uint64_t traffic_ = 0;
  uint64_t progress_ = 0;
  // Bytes of requests that were sent since the last answer, on this connection and at most.
  uint64_t written_ = 0;
  uint64_t most_written_ = 0;
};

}  // namespace edl::ps_client
