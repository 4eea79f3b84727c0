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

// The tensor part of an answer that is made while it is sent. Confined.
class Pieces {
 public:
  virtual ~Pieces() = default;

  // The bytes of all pieces together.
  virtual size_t bytes() const = 0;
  // The bytes of the next piece. 0: there is none.
  virtual size_t NextBytes() const = 0;
  // Writes the next piece. False: it cannot be had any more.
  virtual bool WriteNext(std::byte* out) = 0;
};

// A server's end of a stream of frames: hands out what comes and sends what is answered. While
// much waits to be sent nothing is read, so one who asks and does not listen is held up and costs
// no memory. In one turn of the loop it moves a bounded number of bytes, so that others have their
// turn however much one asks for. A stream that is no stream of frames is told so and ended.
//
// Confined to its loop.
class Connection {
 public:
  enum class Taken { kYes, kLater };
  // Gets each frame, and may Answer it; its content is gone after the call. A frame that is to be
  // taken later is offered again after Resume(), and nothing is read until then.
  using OnFrame = std::function<Taken(const Frame&)>;
  // The stream has ended: Ok where the other end closed it between frames. Called once, from within
  // the connection, so it is destroyed later (EventLoop::Post).
  using OnEnd = std::function<void(const Status&)>;

  Connection(EventLoop& loop, std::unique_ptr<Stream> stream, FrameLimits limits, OnFrame on_frame,
             OnEnd on_end);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends the answer to a frame once the callback is over: its meta part, and behind it so many
  // bytes of tensors for the caller to write where the result points to, before anything else.
  std::byte* Answer(const FrameHeader& to, std::string_view meta, size_t tensor_bytes = 0);
  // As Answer, with tensors that are made piece by piece as the other end takes them. Nothing is
  // read meanwhile, and the content of the frame stays. A piece that cannot be had ends the stream.
  void AnswerInPieces(const FrameHeader& to, std::string_view meta, std::unique_ptr<Pieces> pieces);
  // Sends a refusal instead.
  void Refuse(const FrameHeader& to, const Status& why);
  // Sends what was answered outside of OnFrame.
  void Flush();
  // The frame that was not taken can be.
  void Resume();
  // Ends the stream once all is sent: what comes from now on is not looked at.
  void Close();
  // Ends the stream now, as if the other end had closed it. Not within OnFrame.
  void Drop();
  // Gives the stream away, to go on elsewhere. REQUIRES: called within OnFrame, once, and nothing
  // was answered that is not sent; the connection is only destroyed after it.
  std::unique_ptr<Stream> Release();

  // The bytes of answers that were not sent yet, and whether a frame waits to be taken.
  size_t outgoing_bytes() const { return outgoing_bytes_; }
  bool holds_frame() const { return held_.has_value(); }

 private:
  struct Outgoing {
    Buffer memory;
    size_t begin = 0;  // what is before it was sent
  };

  std::byte* Append(const FrameHeader& header, std::string_view meta, size_t tensor_bytes,
                    size_t following_bytes = 0);
  Buffer Spare();
  void OnReady();
  // Makes the next piece, if there is one and it is time for it.
  void MakePiece();
  // Has a further turn once others had theirs.
  void Again();
  void Read();
  Status ReadFrames();
  // Whether it was taken.
  bool Offer(Frame frame);
  void Discard();
  void Write();
  void Arm();
  void End(const Status& why);

  EventLoop& loop_;
  std::unique_ptr<Stream> stream_;
  FrameReader reader_;
  std::optional<Frame> held_;       // was not taken
  std::unique_ptr<Pieces> pieces_;  // of an answer that is not complete
  Frame pieces_frame_;              // that it answers
  size_t turn_bytes_ = 0;           // that were moved in this turn
  bool again_ = false;              // a further turn was asked for
  const OnFrame on_frame_;
  const OnEnd on_end_;
  std::deque<Outgoing> outgoing_;
  size_t outgoing_bytes_ = 0;
  std::vector<Buffer> spares_;
  short armed_ = 0;
  bool closing_ = false;
  size_t discarded_ = 0;
  // Shared with what was posted to the loop, which may run when the connection is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace edl::wire
