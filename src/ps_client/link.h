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
#include "job/ids.h"
#include "wire/frame.h"
#include "wire/messages.h"
#include "wire/stream.h"

namespace edl::ps_client {

// A list of memory ranges that form the tensor part of a frame. Each tensor is padded to
// wire::kAlignment. The memory stays the caller's.
class Tensors {
 public:
  void Add(const void* data, size_t bytes);
  // Adds a range to the current tensor, without padding in between.
  void Continue(const void* data, size_t bytes);
  // Ends the current tensor with its padding.
  void End();

  const std::vector<iovec>& pieces() const { return pieces_; }
  size_t bytes() const { return bytes_; }

 private:
  std::vector<iovec> pieces_;
  size_t bytes_ = 0;
};

// A message to a lane, and its answer.
struct LinkRequest {
  wire::MessageType type = wire::MessageType::kHello;
  std::string meta;
  Tensors tensors;
  Tensors buffers;  // memory for the tensor part of the answer, which must have this size

  // Decremented when the request is done; outlives the request. May be null.
  size_t* remaining = nullptr;

  // The members below are set by the link.
  bool done = false;
  Status status;                   // not Ok: the refusal of the lane
  std::string answer;              // the meta part of the answer
  job::PsIncarnation incarnation;  // of the server that answered

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
  job::LaneInServer lane_in_server;
  job::LaneInJob lane_in_job;
  uint32_t lanes_in_job = 0;   // 0: for a Hello that only requests the Welcome
  bool shared_memory = false;  // false: TCP
  wire::FrameLimits limits;
};

// A client's connection to one lane: sends requests and receives their answers, in order. When the
// connection is lost, Connect, Attach or Adopt replaces it, and every request without an answer is
// sent again. The lane counts batches, so no batch is applied twice. Confined.
class Link {
 public:
  explicit Link(LinkOptions options) : options_(std::move(options)) {}

  // Blocks until the link is connected. Fails like wire::ConnectTcp.
  Status Connect(Duration timeout);
  // Uses this stream from now on: sends Hello, then all requests without an answer.
  void Attach(std::unique_ptr<wire::Stream> stream);
  // Takes over the stream of another link to the same lane. REQUIRES: greeted.greeted(), and the
  // other link has sent nothing but Hello.
  void Adopt(Link& greeted);
  // Closes the connection. Requests without an answer stay queued.
  void Lose();
  bool connected() const { return stream_ != nullptr; }
  // Sends this declaration on the current connection, and first on each new one.
  void Declare(std::string text);

  // The request stays the caller's; its address must not change until it is done.
  void Send(LinkRequest& request) { queue_.push_back(&request); }
  // Fails all requests without an answer with `why`, and closes the connection.
  void GiveUp(const Status& why);

  // Sends and receives as much as possible without blocking. Unavailable, DataLoss: the connection
  // is lost; the caller closes it with Lose(). Others: the lane refuses this client; do not retry.
  Status Pump();
  // True: every request was answered.
  bool idle() const { return queue_.empty(); }
  // True: a request was not sent completely.
  bool has_unsent() const { return sending_ != nullptr || sent_ < queue_.size(); }
  // The descriptor and the events to poll for.
  int fd() const { return stream_->fd(); }
  short events() const;
  void OnReady() { stream_->OnReady(); }
  const LinkOptions& options() const { return options_; }
  // True once the lane has answered the Hello of this connection.
  bool greeted() const { return stream_ != nullptr && hello_.done && hello_.status.ok(); }
  // The lane's answer to Hello. REQUIRES: greeted().
  const wire::Welcome& welcome() const { return welcome_; }

  // Bytes that were sent and received so far, over all connections.
  uint64_t traffic() const { return traffic_; }
  // Like traffic(), without Hello, Declare and the bytes that are sent again after a loss. It does
  // not grow while a server is only reconnected again and again.
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
    bool in_place = false;  // the tensors are read into the request's buffers
    wire::Buffer front;     // meta part and its padding, or the whole body
    std::vector<iovec> left;
  };

  bool IsOwn(const LinkRequest* request) const {
    return request == &hello_ || request == &declare_;
  }
  Status Write();
  void BeginSending(const LinkRequest& request);
  Status Read();
  Status BeginReceiving();
  Status FinishReceiving();

  const LinkOptions options_;
  std::unique_ptr<wire::Stream> stream_;
  std::deque<LinkRequest*> queue_;  // without an answer; the first `sent_` were sent
  size_t sent_ = 0;
  uint64_t next_number_ = 1;     // of the next request that is sent
  uint64_t awaited_number_ = 1;  // of the first request in the queue
  std::unique_ptr<Sending> sending_;
  Receiving receiving_;
  LinkRequest hello_;
  LinkRequest declare_;
  bool declares_ = false;
  wire::Welcome welcome_;
  uint64_t traffic_ = 0;
  uint64_t progress_ = 0;
  // Bytes of requests that were sent since the last answer: on this connection, and the maximum
  // over all connections.
  uint64_t written_ = 0;
  uint64_t most_written_ = 0;
};

}  // namespace edl::ps_client
