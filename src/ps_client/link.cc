#include "ps_client/link.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"
#include "wire/ring.h"
#include "wire/socket.h"

namespace edl::ps_client {
namespace {

using wire::FrameHeader;
using wire::MessageType;

// Ranges in one system call; the kernel's limit is 1,024 (IOV_MAX).
constexpr size_t kMostPieces = 256;

// Source of padding that is sent, and target of padding that is received.
alignas(wire::kAlignment) const std::array<std::byte, wire::kAlignment> kZeros{};
thread_local std::array<std::byte, wire::kAlignment> t_waste;

// Removes `bytes` bytes from the front of the pieces.
void Advance(std::vector<iovec>& pieces, size_t bytes) {
  size_t done = 0;
  while (done < pieces.size() && bytes >= pieces[done].iov_len) {
    bytes -= pieces[done].iov_len;
    ++done;
  }
  pieces.erase(pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(done));
  if (bytes > 0) {
    pieces.front().iov_base = static_cast<std::byte*>(pieces.front().iov_base) + bytes;
    pieces.front().iov_len -= bytes;
  }
}

std::span<const iovec> FirstOf(const std::vector<iovec>& pieces) {
  return {pieces.data(), std::min(pieces.size(), kMostPieces)};
}

}  // namespace

void Tensors::Add(const void* data, size_t bytes) {
  Continue(data, bytes);
  End();
}

void Tensors::Continue(const void* data, size_t bytes) {
  if (bytes == 0) return;
  pieces_.push_back({const_cast<void*>(data), bytes});  // NOLINT: iovec has no other form
  bytes_ += bytes;
}

void Tensors::End() {
  const size_t padding = wire::AlignedUp(bytes_) - bytes_;
  if (padding == 0) return;
  pieces_.push_back({nullptr, padding});
  bytes_ += padding;
}

Status Link::Connect(Duration timeout) {
  std::unique_ptr<wire::Stream> stream;
  if (options_.shared_memory) {
    EDL_ASSIGN_OR_RETURN(stream, wire::ConnectRing(wire::RingName(options_.port)));
  } else {
    EDL_ASSIGN_OR_RETURN(FileDescriptor socket,
                         wire::ConnectTcp(options_.host, options_.port, timeout));
    stream = std::make_unique<wire::SocketStream>(std::move(socket));
  }
  Attach(std::move(stream));
  return Ok();
}

void Link::Attach(std::unique_ptr<wire::Stream> stream) {
  Lose();
  stream_ = std::move(stream);
  if (declares_) {
    declare_.done = false;
    queue_.push_front(&declare_);
  }
  hello_ = LinkRequest{.type = MessageType::kHello,
                       .meta = wire::Encode(wire::Hello{.token = options_.token,
                                                        .caller = options_.caller,
                                                        .lane_in_server = options_.lane_in_server,
                                                        .lane_in_job = options_.lane_in_job,
                                                        .lanes_in_job = options_.lanes_in_job})};
  queue_.push_front(&hello_);
}

void Link::Adopt(Link& greeted) {
  CHECK(greeted.greeted() && greeted.idle(),
        "the adopted link has no Welcome, or has unanswered requests");
  Lose();
  stream_ = std::move(greeted.stream_);
  welcome_ = greeted.welcome_;
  hello_.done = true;
  hello_.status = Ok();
  next_number_ = awaited_number_ = greeted.next_number_;
  if (declares_) {
    declare_.done = false;
    queue_.push_front(&declare_);
  }
}

void Link::Declare(std::string text) {
  declare_ = LinkRequest{.type = MessageType::kDeclare,
                         .meta = wire::Encode(wire::Declare{.text = std::move(text)})};
  declares_ = true;
  if (connected()) queue_.push_back(&declare_);
}

void Link::Lose() {
  stream_.reset();
  std::erase(queue_, &hello_);
  std::erase(queue_, &declare_);
  sent_ = 0;
  sending_.reset();
  receiving_ = {};
  awaited_number_ = next_number_;
  written_ = 0;
}

void Link::GiveUp(const Status& why) {
  for (LinkRequest* const request : queue_) {
    request->status = why;
    request->Finish();
  }
  queue_.clear();
  most_written_ = 0;
  Lose();
}

short Link::events() const {
  return stream_->EventsFor(has_unsent() ? wire::Stream::Interest::kBoth
                                         : wire::Stream::Interest::kRead);
}

Status Link::Pump() {
  const Status written = Write();
  // Also after a failed write: a lane that refuses the stream sends the reason before it closes,
  // and the reason can still be read.
  Status moved = Read();
  if (!written.ok()) {
    const bool is_refusal = !moved.ok() && moved.code() != Code::kUnavailable;
    return is_refusal ? moved : written;
  }
  // An answer may have made room for more.
  if (moved.ok()) moved = Write();
  return moved;
}

void Link::BeginSending(const LinkRequest& request) {
  const size_t tensor_bytes = request.tensors.bytes();
  const size_t meta_room =
      tensor_bytes > 0 ? wire::AlignedUp(request.meta.size()) : request.meta.size();
  const auto header =
      wire::EncodeHeader({.type = static_cast<uint8_t>(request.type),
                          .request = next_number_++,
                          .body_bytes = meta_room + tensor_bytes,
                          .meta_bytes = static_cast<uint32_t>(request.meta.size())});
  sending_ = std::make_unique<Sending>();
  sending_->head.append(reinterpret_cast<const char*>(header.data()), header.size());
  sending_->head.append(request.meta);
  sending_->head.resize(header.size() + meta_room);
  sending_->left.push_back({sending_->head.data(), sending_->head.size()});
  for (const iovec& piece : request.tensors.pieces()) {
    const bool is_padding = piece.iov_base == nullptr;
    sending_->left.push_back(
        {is_padding ? const_cast<std::byte*>(kZeros.data()) : piece.iov_base,  // NOLINT
         piece.iov_len});
  }
}

Status Link::Write() {
  while (sending_ != nullptr || sent_ < queue_.size()) {
    if (sending_ == nullptr) {
      BeginSending(*queue_[sent_]);
      ++sent_;
    }
    while (!sending_->left.empty()) {
      EDL_ASSIGN_OR_RETURN(const size_t written, stream_->Write(FirstOf(sending_->left)));
      if (written == 0) return Ok();
      traffic_ += written;
      if (!IsOwn(queue_[sent_ - 1])) written_ += written;
      if (written_ > most_written_) {
        progress_ += written_ - most_written_;
        most_written_ = written_;
      }
      Advance(sending_->left, written);
    }
    sending_.reset();
  }
  return Ok();
}

Status Link::Read() {
  while (true) {
    if (!receiving_.has_header && receiving_.left.empty()) {
      receiving_.left = {{receiving_.bytes.data(), receiving_.bytes.size()}};
    }
    while (!receiving_.left.empty()) {
      EDL_ASSIGN_OR_RETURN(const size_t got, stream_->Read(FirstOf(receiving_.left)));
      if (got == 0) return Ok();
      traffic_ += got;
      if (receiving_.in_place) progress_ += got;
      Advance(receiving_.left, got);
    }
    if (!receiving_.has_header) {
      EDL_RETURN_IF_ERROR(BeginReceiving());
    }
    if (receiving_.left.empty()) {
      EDL_RETURN_IF_ERROR(FinishReceiving());
    }
  }
}

// The header was received.
Status Link::BeginReceiving() {
  EDL_ASSIGN_OR_RETURN(receiving_.header, wire::DecodeHeader(receiving_.bytes, options_.limits));
  receiving_.has_header = true;
  const FrameHeader& header = receiving_.header;
  const bool is_refusal = header.type == static_cast<uint8_t>(MessageType::kRefusal);
  // A refusal of the whole stream has request number 0.
  const bool is_for_all = is_refusal && header.request == 0;
  if (!is_for_all && (sent_ == 0 || header.request != awaited_number_)) {
    return DataLoss("received an answer to request {}, expected an answer to request {}",
                    header.request, awaited_number_);
  }
  const size_t meta_room = wire::AlignedUp(header.meta_bytes);
  receiving_.in_place = false;
  if (!is_refusal && header.body_bytes > header.meta_bytes) {
    const Tensors& buffers = queue_.front()->buffers;
    if (header.body_bytes != meta_room + buffers.bytes()) {
      return DataLoss("received an answer with {} bytes, expected {}", header.body_bytes,
                      meta_room + buffers.bytes());
    }
    receiving_.in_place = true;
  }
  receiving_.front.Reshape(receiving_.in_place ? meta_room : header.body_bytes);
  if (receiving_.front.size() > 0) {
    receiving_.left.push_back({receiving_.front.data(), receiving_.front.size()});
  }
  if (receiving_.in_place) {
    for (const iovec& room : queue_.front()->buffers.pieces()) {
      const bool is_padding = room.iov_base == nullptr;
      receiving_.left.push_back({is_padding ? t_waste.data() : room.iov_base, room.iov_len});
    }
  }
  return Ok();
}

// The body was received.
Status Link::FinishReceiving() {
  const FrameHeader header = receiving_.header;
  const std::span<const std::byte> meta =
      receiving_.front.bytes().first(receiving_.header.meta_bytes);
  receiving_.has_header = false;
  const bool had_rooms = std::exchange(receiving_.in_place, false);
  const bool is_refusal = header.type == static_cast<uint8_t>(MessageType::kRefusal);
  if (is_refusal && header.request == 0) return wire::DecodeRefusal(meta);
  LinkRequest& request = *queue_.front();
  if (is_refusal) {
    Status why = wire::DecodeRefusal(meta);
    // The server cannot handle it now, for example because its master no longer reaches it. The
    // request is sent again on the next connection.
    if (why.code() == Code::kUnavailable) return why;
    request.status = std::move(why);
  } else if (header.type != wire::AnswerTo(static_cast<uint8_t>(request.type))) {
    return DataLoss("received an answer of type {} to a request of type {}", header.type,
                    static_cast<int>(request.type));
  } else if (!had_rooms && request.buffers.bytes() > 0) {
    return DataLoss("received an answer without tensors, expected {} bytes",
                    request.buffers.bytes());
  } else {
    request.answer.assign(reinterpret_cast<const char*>(meta.data()), meta.size());
  }
  request.incarnation = welcome_.incarnation;
  if (!IsOwn(&request)) {
    ++progress_;
    written_ = most_written_ = 0;
  }
  queue_.pop_front();
  request.Finish();
  --sent_;
  ++awaited_number_;
  if (&request == &hello_) {
    EDL_RETURN_IF_ERROR(request.status);
    EDL_RETURN_IF_ERROR(wire::Decode(std::as_bytes(std::span(request.answer)), welcome_));
  }
  if (&request == &declare_) EDL_RETURN_IF_ERROR(request.status);
  return Ok();
}

}  // namespace edl::ps_client
