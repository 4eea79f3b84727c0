#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/event_loop.h"
#include "base/status.h"
#include "wire/frame.h"
#include "wire/frame_reader.h"
#include "wire/stream.h"

namespace edl::wire {

// Produces the tensor part of an answer piece by piece, while it is sent. Confined.
class Pieces {
 public:
  virtual ~Pieces() = default;

  // The size of all pieces together.
  virtual size_t bytes() const = 0;
  // The size of the next piece. 0: all pieces were written.
  virtual size_t NextBytes() const = 0;
  // Writes the next piece to `out`. False: the source of the pieces no longer exists.
  virtual bool WriteNext(std::byte* out) = 0;
};

// The server side of a stream of frames: passes each frame to a callback and sends the answers.
// - Backpressure: while many bytes of answers are unsent, it reads no further frames. A peer that
//   sends requests and does not read its answers is paused and costs a bounded amount of memory.
// - Fairness: in one turn of the event loop it moves a bounded number of bytes.
// - If the peer sends something that is not a frame, it sends a refusal and closes the stream.
//
// Confined to its loop.
class FrameConnection {
 public:
  enum class Handled { kDone, kLater };
  // Called with each frame, and may Answer it. The content of the frame is valid during the call.
  // kLater: the callback is called with the same frame again after Resume(), and no other frame is
  // read until then.
  using OnFrame = std::function<Handled(const Frame&)>;
  // Called once, when the stream has ended. Ok: the peer closed it between two frames. The call is
  // made by a method of the connection: destroy the connection later (EventLoop::Post).
  using OnEnd = std::function<void(const Status&)>;

  FrameConnection(EventLoop& loop, std::unique_ptr<Stream> stream, FrameLimits limits,
                  OnFrame on_frame, OnEnd on_end);
  ~FrameConnection();
  FrameConnection(const FrameConnection&) = delete;
  FrameConnection& operator=(const FrameConnection&) = delete;

  // Queues the answer to a frame: `meta`, then `tensor_bytes` bytes that the caller writes to the
  // returned address before any other call. It is sent when OnFrame has returned, or by Flush().
  std::byte* Answer(const FrameHeader& to, std::string_view meta, size_t tensor_bytes = 0);
  // Like Answer, with tensors that `pieces` produces as the peer reads them. Until the last piece
  // is sent, no other frame is read, and the content of the answered frame stays valid. If
  // WriteNext returns false, the stream is closed.
  void AnswerInPieces(const FrameHeader& to, std::string_view meta, std::unique_ptr<Pieces> pieces);
  // Answers with a refusal.
  void Refuse(const FrameHeader& to, const Status& why);
  // Sends queued answers. Needed after an Answer outside of OnFrame.
  void Flush();
  // Passes the frame that OnFrame postponed to OnFrame again.
  void Resume();
  // Ends the stream when all answers are sent. Discards what the peer sends from now on.
  void Close();
  // Ends the stream now, as if the peer had closed it. REQUIRES: not called within OnFrame.
  void Drop();
  // Moves the stream out, for another connection. REQUIRES: called within OnFrame, once, and no
  // answer is unsent. Afterwards the connection can only be destroyed.
  std::unique_ptr<Stream> Release();

  // Bytes of answers that were not sent yet, and whether OnFrame has postponed a frame.
  size_t outgoing_bytes() const { return outgoing_bytes_; }
  bool holds_frame() const { return held_.has_value(); }

 private:
  struct Outgoing {
    Buffer memory;
    size_t begin = 0;  // the first byte that was not sent
  };

  std::byte* Append(const FrameHeader& header, std::string_view meta, size_t tensor_bytes,
                    size_t following_bytes = 0);
  Buffer Spare();
  void OnReady();
  // Produces the next piece if few enough bytes are unsent.
  void MakePiece();
  // Continues in the next turn of the loop.
  void Again();
  void Read();
  Status ReadFrames();
  // False: OnFrame postponed the frame.
  bool Offer(Frame frame);
  void Discard();
  void Write();
  void Arm();
  void End(const Status& why);

  EventLoop& loop_;
  std::unique_ptr<Stream> stream_;
  FrameReader reader_;
  std::optional<Frame> held_;       // that OnFrame postponed
  std::unique_ptr<Pieces> pieces_;  // of the answer that is being sent
  Frame pieces_frame_;              // the frame that they answer
  size_t turn_bytes_ = 0;           // moved in this turn of the loop
  bool again_ = false;              // another turn is scheduled
  const OnFrame on_frame_;
  const OnEnd on_end_;
  std::deque<Outgoing> outgoing_;
  size_t outgoing_bytes_ = 0;
  std::vector<Buffer> spares_;
  short armed_ = 0;
  bool closing_ = false;
  size_t discarded_ = 0;
  // Shared with tasks that were posted to the loop: they may run after the connection is destroyed.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace edl::wire
