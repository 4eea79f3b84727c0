#include "wire/frame_connection.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "wire/messages.h"

namespace edl::wire {
namespace {

// No frame is read while more bytes of answers are unsent.
constexpr size_t kMostOutgoing = size_t{8} << 20;
// Bytes to move in one turn of the loop.
constexpr int kFramesInATurn = 8;
constexpr size_t kBytesInATurn = size_t{1} << 20;
// The next piece of an answer is produced when fewer bytes are unsent.
constexpr size_t kLeastOutgoing = size_t{1} << 20;
// Buffers that are kept for the next answers.
constexpr size_t kMostSpares = 4;
constexpr size_t kMostSpareBytes = size_t{16} << 20;
// Bytes to read from a refused peer, so that it receives the refusal before the stream is reset.
constexpr size_t kMostDiscarded = size_t{1} << 20;

// A body begins at a multiple of kAlignment; its header is directly before it.
constexpr size_t kBody = kAlignment;
constexpr size_t kHeader = kBody - FrameHeader::kBytes;

}  // namespace

FrameConnection::FrameConnection(EventLoop& loop, std::unique_ptr<Stream> stream,
                                 FrameLimits limits, OnFrame on_frame, OnEnd on_end)
    : loop_(loop),
      stream_(std::move(stream)),
      reader_(limits),
      on_frame_(std::move(on_frame)),
      on_end_(std::move(on_end)),
      armed_(stream_->EventsFor(Stream::Interest::kRead)) {
  const Status watched = loop_.Add(stream_->fd(), armed_, [this] { OnReady(); });
  // The bytes that arrived before made no descriptor ready.
  loop_.Post([this, alive = alive_, watched] {
    if (!*alive || stream_ == nullptr) return;
    if (watched.ok()) {
      OnReady();
    } else {
      End(watched);
    }
  });
}

FrameConnection::~FrameConnection() {
  *alive_ = false;
  if (stream_ != nullptr) loop_.Remove(stream_->fd());
}

Buffer FrameConnection::Spare() {
  if (spares_.empty()) return {};
  Buffer memory = std::move(spares_.back());
  spares_.pop_back();
  return memory;
}

// `following_bytes` bytes of the body are appended later.
std::byte* FrameConnection::Append(const FrameHeader& header, std::string_view meta,
                                   size_t tensor_bytes, size_t following_bytes) {
  const size_t body_bytes = header.body_bytes - following_bytes;
  Buffer memory = Spare();
  memory.Reshape(kBody + body_bytes);
  const auto encoded = EncodeHeader(header);
  std::memcpy(memory.data() + kHeader, encoded.data(), encoded.size());
  std::byte* const body = memory.data() + kBody;
  std::copy_n(reinterpret_cast<const std::byte*>(meta.data()), meta.size(), body);
  std::byte* const tensors = body + (body_bytes - tensor_bytes);
  std::memset(body + meta.size(), 0, static_cast<size_t>(tensors - body) - meta.size());
  outgoing_bytes_ += memory.size() - kHeader;
  outgoing_.push_back({.memory = std::move(memory), .begin = kHeader});
  return tensors;
}

std::byte* FrameConnection::Answer(const FrameHeader& to, std::string_view meta,
                                   size_t tensor_bytes) {
  const size_t meta_room = tensor_bytes > 0 ? AlignedUp(meta.size()) : meta.size();
  return Append({.type = AnswerTo(to.type),
                 .request = to.request,
                 .body_bytes = meta_room + tensor_bytes,
                 .meta_bytes = static_cast<uint32_t>(meta.size())},
                meta, tensor_bytes);
}

void FrameConnection::AnswerInPieces(const FrameHeader& to, std::string_view meta,
                                     std::unique_ptr<Pieces> pieces) {
  CHECK(pieces_ == nullptr, "another answer is being sent in pieces");
  const size_t bytes = pieces->bytes();
  Append({.type = AnswerTo(to.type),
          .request = to.request,
          .body_bytes = AlignedUp(meta.size()) + bytes,
          .meta_bytes = static_cast<uint32_t>(meta.size())},
         meta, 0, bytes);
  pieces_ = std::move(pieces);
}

void FrameConnection::Refuse(const FrameHeader& to, const Status& why) {
  const std::string meta = Encode(why);
  Append({.type = static_cast<uint8_t>(MessageType::kRefusal),
          .request = to.request,
          .body_bytes = meta.size(),
          .meta_bytes = static_cast<uint32_t>(meta.size())},
         meta, 0);
}

void FrameConnection::Flush() {
  if (stream_ != nullptr) OnReady();
}

void FrameConnection::Close() { closing_ = true; }

void FrameConnection::Drop() {
  if (stream_ != nullptr) End(Ok());
}

std::unique_ptr<Stream> FrameConnection::Release() {
  CHECK(outgoing_.empty(), "{} answers are unsent", outgoing_.size());
  loop_.Remove(stream_->fd());
  return std::move(stream_);
}

void FrameConnection::OnReady() {
  turn_bytes_ = 0;
  stream_->OnReady();
  // While a frame is held nothing is read, so reading would not detect the end of the stream. The
  // frame was not answered: the peer sends it again if it reconnects.
  if (held_.has_value() && stream_->IsPeerGone()) {
    End(Unavailable("the peer was lost before its request was handled"));
    return;
  }
  Write();
  if (stream_ != nullptr) MakePiece();
  if (stream_ != nullptr && pieces_ == nullptr) Read();
  if (stream_ != nullptr) Arm();
}

void FrameConnection::Again() {
  if (std::exchange(again_, true)) return;
  loop_.Post([this, alive = alive_] {
    if (!*alive) return;
    again_ = false;
    if (stream_ != nullptr) OnReady();
  });
}

void FrameConnection::MakePiece() {
  if (pieces_ == nullptr) return;
  if (outgoing_bytes_ < kLeastOutgoing) {
    const size_t bytes = pieces_->NextBytes();
    Buffer memory = Spare();
    memory.Reshape(bytes);
    if (bytes > 0 && !pieces_->WriteNext(memory.data())) {
      End(DataLoss("the parameters of an answer no longer exist"));
      return;
    }
    outgoing_bytes_ += bytes;
    if (bytes > 0) outgoing_.push_back({.memory = std::move(memory), .begin = 0});
    Write();
    if (stream_ == nullptr) return;
  }
  if (pieces_->NextBytes() == 0) {
    pieces_.reset();
    reader_.Recycle(std::exchange(pieces_frame_, Frame()));
  }
  // More bytes may have arrived already, for which the descriptor does not become ready again.
  if (pieces_ == nullptr || outgoing_bytes_ < kLeastOutgoing) Again();
}

void FrameConnection::Read() {
  if (closing_) {
    Discard();
    return;
  }
  const Status read = ReadFrames();
  if (stream_ == nullptr) return;
  if (read.code() == Code::kUnavailable || read.code() == Code::kDataLoss) {
    End(reader_.IsBetweenFrames() && read.code() == Code::kUnavailable ? Ok() : read);
    return;
  }
  if (!read.ok()) {
    Refuse({}, read);
    Close();
  }
  Write();
}

// Ok: no more bytes now, or the turn is over.
Status FrameConnection::ReadFrames() {
  if (held_.has_value()) return Ok();
  for (int frames = 0; frames < kFramesInATurn && turn_bytes_ < kBytesInATurn; ++frames) {
    std::optional<Frame> frame = reader_.Next();
    while (!frame.has_value() && turn_bytes_ < kBytesInATurn) {
      const std::span<std::byte> room = reader_.Room();
      const std::array<iovec, 1> buffers = {
          iovec{room.data(), std::min(room.size(), kBytesInATurn - turn_bytes_)}};
      EDL_ASSIGN_OR_RETURN(const size_t got, stream_->Read(buffers));
      if (got == 0) return Ok();
      turn_bytes_ += got;
      EDL_RETURN_IF_ERROR(reader_.Add(got));
      frame = reader_.Next();
    }
    if (!frame.has_value()) break;
    if (!Offer(*std::move(frame))) return Ok();
    if (stream_ == nullptr || closing_) return Ok();
    Write();
    if (stream_ == nullptr || outgoing_bytes_ > kMostOutgoing) return Ok();
    if (pieces_ != nullptr) break;
  }
  // More bytes may have arrived, for which the descriptor does not become ready again.
  Again();
  return Ok();
}

bool FrameConnection::Offer(Frame frame) {
  if (on_frame_(frame) == Handled::kLater) {
    held_ = std::move(frame);
    return false;
  }
  if (pieces_ != nullptr) {
    pieces_frame_ = std::move(frame);
  } else {
    reader_.Recycle(std::move(frame));
  }
  return true;
}

void FrameConnection::Resume() {
  if (!held_.has_value() || stream_ == nullptr) return;
  Frame frame = *std::exchange(held_, std::nullopt);
  if (!Offer(std::move(frame)) || stream_ == nullptr) return;
  OnReady();
}

void FrameConnection::Discard() {
  std::array<std::byte, 4096> scratch;  // NOLINT: written before it is read
  const std::array<iovec, 1> buffers = {iovec{scratch.data(), scratch.size()}};
  while (true) {
    const Result<size_t> got = stream_->Read(buffers);
    if (got.ok() && *got == 0) return;
    discarded_ += got.ok() ? *got : 0;
    if (got.ok() && discarded_ <= kMostDiscarded) continue;
    End(Ok());
    return;
  }
}

void FrameConnection::Write() {
  while (!outgoing_.empty()) {
    if (turn_bytes_ >= kBytesInATurn) {
      Again();
      return;
    }
    Outgoing& first = outgoing_.front();
    const std::array<iovec, 1> pieces = {
        iovec{first.memory.data() + first.begin,
              std::min(first.memory.size() - first.begin, kBytesInATurn - turn_bytes_)}};
    const Result<size_t> sent = stream_->Write(pieces);
    if (!sent.ok()) {
      End(sent.status());
      return;
    }
    if (*sent == 0) return;
    turn_bytes_ += *sent;
    first.begin += *sent;
    outgoing_bytes_ -= *sent;
    if (first.begin < first.memory.size()) continue;
    if (spares_.size() < kMostSpares && first.memory.capacity() <= kMostSpareBytes) {
      spares_.push_back(std::move(first.memory));
    }
    outgoing_.pop_front();
  }
}

void FrameConnection::Arm() {
  using Interest = Stream::Interest;
  const bool waits = held_.has_value() || pieces_ != nullptr;
  const bool full = outgoing_bytes_ > kMostOutgoing || waits;
  Interest interest =
      outgoing_.empty() ? Interest::kRead : (full ? Interest::kWrite : Interest::kBoth);
  if (waits && outgoing_.empty()) interest = Interest::kNothing;
  const short events = stream_->EventsFor(interest);
  if (events == armed_) return;
  armed_ = events;
  loop_.Change(stream_->fd(), events);
}

void FrameConnection::End(const Status& why) {
  loop_.Remove(stream_->fd());
  stream_.reset();
  on_end_(why);
}

}  // namespace edl::wire
