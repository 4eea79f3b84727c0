#include "ps/session.h"

#include <cstring>
#include <utility>

namespace edl::ps {
namespace {

template <typename Message>
Result<Message> Read(const wire::Frame& frame) {
  Message message;
  EDL_RETURN_IF_ERROR(wire::Decode(frame.meta(), message));
  return message;
}

// Messages without tensors have none.
Status NoTensors(const wire::Frame& frame) { return wire::TensorReader(frame.tensors()).End(); }

}  // namespace

Session::Session(wire::EventLoop& loop, std::unique_ptr<wire::Stream> stream,
                 wire::FrameLimits limits, Lane& lane, LaneSaver& saver, LaneCounters& counters,
                 const wire::FrameHeader& hello, const wire::Welcome& welcome, const Clock& clock,
                 OnEnd on_end)
    : limits_(limits),
      lane_(lane),
      saver_(saver),
      counters_(counters),
      clock_(clock),
      connection_(
          loop, std::move(stream), limits,
          [this](const wire::Frame& frame) { return Handle(frame); }, std::move(on_end)) {
  connection_.Answer(hello, wire::Encode(welcome));
}

wire::Connection::Taken Session::Handle(const wire::Frame& frame) {
  const bool is_push = frame.header.type == static_cast<uint8_t>(wire::MessageType::kPush);
  if (is_push && saver_.IsFull()) {
    counters_.waits_for_saves.fetch_add(1, std::memory_order_relaxed);
    return wire::Connection::Taken::kLater;
  }
  if (const Status handled = Dispatch(frame); !handled.ok()) {
    counters_.refusals.fetch_add(1, std::memory_order_relaxed);
    connection_.Refuse(frame.header, handled);
  }
  return wire::Connection::Taken::kYes;
}

Status Session::Dispatch(const wire::Frame& frame) {
  if (saves_) return FailedPrecondition("a save is under way on this connection: use another");
  switch (static_cast<wire::MessageType>(frame.header.type)) {
    case wire::MessageType::kDeclare:
      return HandleDeclare(frame);
    case wire::MessageType::kPut:
      return HandlePut(frame);
    case wire::MessageType::kPull:
      return HandlePull(frame);
    case wire::MessageType::kOpen:
      return HandleOpen(frame);
    case wire::MessageType::kPush:
      return HandlePush(frame);
    case wire::MessageType::kSave:
      return HandleSave(frame);
    case wire::MessageType::kRestore:
      return HandleRestore(frame);
    case wire::MessageType::kHello:
      return FailedPrecondition("a second Hello on a connection");
    default:
      return Unimplemented("there is no message of type {}", frame.header.type);
  }
}

Status Session::HandleDeclare(const wire::Frame& frame) {
  EDL_ASSIGN_OR_RETURN(const auto declare, Read<wire::Declare>(frame));
  EDL_RETURN_IF_ERROR(NoTensors(frame));
  EDL_ASSIGN_OR_RETURN(const Declaration declaration, ParseDeclaration(declare.text));
  EDL_ASSIGN_OR_RETURN(names_, lane_.Declare(declaration));
  connection_.Answer(frame.header, {});
  return Ok();
}

Status Session::HandlePut(const wire::Frame& frame) {
  EDL_ASSIGN_OR_RETURN(const auto put, Read<wire::Put>(frame));
  EDL_ASSIGN_OR_RETURN(const wire::PutAnswer answer, lane_.Put(names_, put, frame.tensors()));
  connection_.Answer(frame.header, wire::Encode(answer));
  return Ok();
}

Status Session::HandlePull(const wire::Frame& frame) {
  const Time begin = clock_.Now();
  EDL_ASSIGN_OR_RETURN(const auto pull, Read<wire::Pull>(frame));
  EDL_ASSIGN_OR_RETURN(const Lane::PullPlan plan, lane_.Plan(names_, pull, frame.tensors()));
  if (plan.bytes > limits_.body_bytes) {
    return ResourceExhausted("a pull of {} bytes, and a frame takes {}: ask for less at once",
                             plan.bytes, limits_.body_bytes);
  }
  // A pull changes no version, so the answer's meta part is known before.
  const wire::PullAnswer answer{.version = lane_.version()};
  std::byte* const out = connection_.Answer(frame.header, wire::Encode(answer), plan.bytes);
  lane_.Pull(plan, out);
  counters_.pulls.fetch_add(1, std::memory_order_relaxed);
  for (const auto& [table, ids] : plan.tables) {
    counters_.rows_pulled.fetch_add(ids.size(), std::memory_order_relaxed);
  }
  counters_.pull_times.Add(clock_.Now() - begin);
  return Ok();
}

Status Session::HandleOpen(const wire::Frame& frame) {
  EDL_ASSIGN_OR_RETURN(const auto open, Read<wire::Open>(frame));
  EDL_RETURN_IF_ERROR(NoTensors(frame));
  EDL_ASSIGN_OR_RETURN(const wire::OpenAnswer answer, lane_.Open(open));
  connection_.Answer(frame.header, wire::Encode(answer));
  return Ok();
}

Status Session::HandlePush(const wire::Frame& frame) {
  const Time begin = clock_.Now();
  EDL_ASSIGN_OR_RETURN(const auto push, Read<wire::Push>(frame));
  EDL_ASSIGN_OR_RETURN(const wire::PushAnswer answer, lane_.Push(names_, push, frame.tensors()));
  connection_.Answer(frame.header, wire::Encode(answer));
  counters_.pushes.fetch_add(1, std::memory_order_relaxed);
  for (const wire::TableShare& share : push.tables) {
    counters_.rows_pushed.fetch_add(share.ids, std::memory_order_relaxed);
  }
  counters_.push_times.Add(clock_.Now() - begin);
  return Ok();
}

Status Session::HandleSave(const wire::Frame& frame) {
  EDL_ASSIGN_OR_RETURN(const auto save, Read<wire::Save>(frame));
  EDL_RETURN_IF_ERROR(NoTensors(frame));
  EDL_RETURN_IF_ERROR(saver_.Begin(
      save.path, [this, alive = alive_, header = frame.header](const Result<Saved>& saved) {
        if (!*alive) return;
        saves_ = false;
        if (saved.ok()) {
          const auto seconds = [](Duration time) {
            return std::chrono::duration<double>(time).count();
          };
          connection_.Answer(header, wire::Encode(wire::SaveAnswer{
                                         .bytes = saved->bytes,
                                         .seconds = seconds(saved->took),
                                         .longest_pause_seconds = seconds(saved->longest_pause)}));
        } else {
          counters_.refusals.fetch_add(1, std::memory_order_relaxed);
          connection_.Refuse(header, saved.status());
        }
        connection_.Flush();
      }));
  saves_ = true;
  return Ok();
}

Status Session::HandleRestore(const wire::Frame& frame) {
  EDL_ASSIGN_OR_RETURN(const auto restore, Read<wire::Restore>(frame));
  EDL_RETURN_IF_ERROR(NoTensors(frame));
  if (!lane_.IsEmpty()) {
    return FailedPrecondition("this lane has parameters already: only an empty one is restored");
  }
  for (const std::string& path : restore.paths) {
    EDL_ASSIGN_OR_RETURN(const auto part, PartReader::Open(path));
    EDL_RETURN_IF_ERROR(lane_.Restore(*part));
  }
  lane_.EndRestore();
  connection_.Answer(frame.header, wire::Encode(wire::RestoreAnswer{.rows = lane_.rows()}));
  return Ok();
}

}  // namespace edl::ps
