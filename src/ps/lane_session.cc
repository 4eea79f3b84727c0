#include "ps/lane_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "checkpoint/shard_set.h"
#include "ps/pull_pieces.h"

namespace edl::ps {
namespace {

template <typename Message>
Result<Message> Read(const wire::Frame& frame) {
  Message message;
  EDL_RETURN_IF_ERROR(wire::Decode(frame.meta(), message));
  return message;
}

// InvalidArgument: the frame has a tensor part, which this message must not have.
Status NoTensors(const wire::Frame& frame) { return wire::TensorReader(frame.tensors()).End(); }

}  // namespace

LaneSession::LaneSession(const SessionContext& context, std::unique_ptr<wire::Stream> stream,
                         const wire::FrameHeader& hello, const wire::Welcome& welcome, OnEnd on_end)
    : limits_(context.limits),
      lane_(context.lane),
      saver_(context.saver),
      restorer_(context.restorer),
      serving_(context.serving),
      counters_(context.counters),
      clock_(context.clock),
      connection_(
          context.loop, std::move(stream), context.limits,
          [this](const wire::Frame& frame) { return Handle(frame); }, std::move(on_end)) {
  connection_.Answer(hello, wire::Encode(welcome));
}

LaneSession::~LaneSession() {
  SetOpenWaits(false);
  *alive_ = false;
  // The connection that waits for the result is closed.
  if (saves_) saver_.Cancel();
  if (restores_) restorer_.Cancel();
}

void LaneSession::SetOpenWaits(bool waits) {
  if (waits == open_waits_) return;
  open_waits_ = waits;
  serving_.opens_waiting += waits ? 1 : -1;
}

bool LaneSession::MustWait(wire::MessageType type) const {
  switch (type) {
    case wire::MessageType::kDeclare:
    case wire::MessageType::kPull:
      return !serving_.serves;
    // While the server leaves, changes wait: the client sends them again to the successor.
    case wire::MessageType::kPut:
    case wire::MessageType::kPush:
      return !serving_.serves || serving_.leaving || serving_.fenced;
    case wire::MessageType::kOpen:
      return !serving_.serves || !serving_.may_push || serving_.leaving || serving_.fenced;
    default:
      return false;
  }
}

bool LaneSession::WaitsForSave(wire::MessageType type) const {
  return (type == wire::MessageType::kPush || type == wire::MessageType::kPut) && saver_.IsFull();
}

Status LaneSession::RefreshDeclared() {
  if (generation_ == 0 || generation_ == lane_.generation()) return Ok();
  EDL_ASSIGN_OR_RETURN(declared_, lane_.Declare(declaration_));
  generation_ = lane_.generation();
  return Ok();
}

wire::FrameConnection::Handled LaneSession::Handle(const wire::Frame& frame) {
  const auto type = static_cast<wire::MessageType>(frame.header.type);
  switch (type) {
    case wire::MessageType::kDeclare:
    case wire::MessageType::kPull:
    case wire::MessageType::kPut:
    case wire::MessageType::kOpen:
    case wire::MessageType::kPush:
      is_worker_ = true;
      break;
    default:
      break;
  }
  if (MustWait(type)) {
    SetOpenWaits(serving_.serves && !serving_.may_push);
    return wire::FrameConnection::Handled::kLater;
  }
  SetOpenWaits(false);
  if (WaitsForSave(type)) {
    counters_.waits_for_saves.fetch_add(1, std::memory_order_relaxed);
    return wire::FrameConnection::Handled::kLater;
  }
  if (const Status handled = Dispatch(frame); !handled.ok()) {
    counters_.refusals.fetch_add(1, std::memory_order_relaxed);
    connection_.Refuse(frame.header, handled);
  }
  return wire::FrameConnection::Handled::kDone;
}

Status LaneSession::Dispatch(const wire::Frame& frame) {
  if (saves_ || restores_) {
    return FailedPrecondition(
        "a save or a restore is running on this connection: use another connection");
  }
  EDL_RETURN_IF_ERROR(RefreshDeclared());
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
    case wire::MessageType::kServe:
      return HandleServe(frame);
    case wire::MessageType::kState:
      return HandleState(frame);
    case wire::MessageType::kFlush:
      EDL_RETURN_IF_ERROR(NoTensors(frame));
      lane_.Flush();
      connection_.Answer(frame.header, {});
      return Ok();
    case wire::MessageType::kHello:
      return FailedPrecondition("a second Hello on a connection: Hello is only the first message");
    default:
      return Unimplemented("unknown message type {}", frame.header.type);
  }
}

Status LaneSession::HandleDeclare(const wire::Frame& frame) {
  EDL_ASSIGN_OR_RETURN(const auto declare, Read<wire::Declare>(frame));
  EDL_RETURN_IF_ERROR(NoTensors(frame));
  EDL_ASSIGN_OR_RETURN(Declaration declaration, ParseDeclaration(declare.text));
  EDL_ASSIGN_OR_RETURN(declared_, lane_.Declare(declaration));
  declaration_ = std::move(declaration);
  generation_ = lane_.generation();
  connection_.Answer(frame.header, {});
  return Ok();
}

Status LaneSession::HandlePut(const wire::Frame& frame) {
  EDL_ASSIGN_OR_RETURN(const auto put, Read<wire::Put>(frame));
  EDL_ASSIGN_OR_RETURN(const wire::PutAnswer answer, lane_.Put(declared_, put, frame.tensors()));
  connection_.Answer(frame.header, wire::Encode(answer));
  return Ok();
}

Status LaneSession::HandlePull(const wire::Frame& frame) {
  const Time begin = clock_.Now();
  EDL_ASSIGN_OR_RETURN(const auto pull, Read<wire::Pull>(frame));
  EDL_ASSIGN_OR_RETURN(Lane::PullPlan plan, lane_.Plan(declared_, pull, frame.tensors()));
  if (plan.bytes > limits_.body_bytes) {
    return ResourceExhausted(
        "the answer to this pull has {} bytes, and a frame has at most {}: pull less", plan.bytes,
        limits_.body_bytes);
  }
  // A pull does not change the version, so the answer's meta part can be encoded first.
  const wire::PullAnswer answer{.version = lane_.version()};
  counters_.pulls.fetch_add(1, std::memory_order_relaxed);
  for (const auto& [table, ids] : plan.tables) {
    counters_.rows_pulled.fetch_add(ids.size(), std::memory_order_relaxed);
  }
  if (plan.bytes > 2 * PullPieces::kPieceBytes) {
    connection_.AnswerInPieces(frame.header, wire::Encode(answer),
                               std::make_unique<PullPieces>(lane_, std::move(plan)));
    return Ok();
  }
  std::byte* const out = connection_.Answer(frame.header, wire::Encode(answer), plan.bytes);
  lane_.Pull(plan, out);
  counters_.pull_times.Add(clock_.Now() - begin);
  return Ok();
}

Status LaneSession::HandleOpen(const wire::Frame& frame) {
  EDL_ASSIGN_OR_RETURN(const auto open, Read<wire::Open>(frame));
  EDL_RETURN_IF_ERROR(NoTensors(frame));
  EDL_ASSIGN_OR_RETURN(wire::OpenAnswer answer, lane_.Open(open));
  answer.ps_epoch = serving_.ps_epoch;
  connection_.Answer(frame.header, wire::Encode(answer));
  return Ok();
}

Status LaneSession::HandlePush(const wire::Frame& frame) {
  const Time begin = clock_.Now();
  EDL_ASSIGN_OR_RETURN(const auto push, Read<wire::Push>(frame));
  EDL_ASSIGN_OR_RETURN(const wire::PushAnswer answer, lane_.Push(declared_, push, frame.tensors()));
  connection_.Answer(frame.header, wire::Encode(answer));
  counters_.pushes.fetch_add(1, std::memory_order_relaxed);
  for (const wire::TableEntry& share : push.tables) {
    counters_.rows_pushed.fetch_add(share.ids, std::memory_order_relaxed);
  }
  counters_.push_times.Add(clock_.Now() - begin);
  return Ok();
}

Status LaneSession::HandleSave(const wire::Frame& frame) {
  EDL_ASSIGN_OR_RETURN(const auto save, Read<wire::Save>(frame));
  EDL_RETURN_IF_ERROR(NoTensors(frame));
  if (!serving_.serves)
    return FailedPrecondition("this server cannot be saved: it does not serve yet");
  if (restorer_.running()) return FailedPrecondition("a restore of this lane is running");
  EDL_RETURN_IF_ERROR(saver_.Begin(
      save.path, [this, alive = alive_, header = frame.header](const Result<SaveReport>& saved) {
        if (*alive) OnSaved(header, saved);
      }));
  saves_ = true;
  return Ok();
}

void LaneSession::OnSaved(const wire::FrameHeader& header, const Result<SaveReport>& saved) {
  saves_ = false;
  if (saved.ok()) {
    const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
    connection_.Answer(header, wire::Encode(wire::SaveAnswer{
                                   .bytes = saved->bytes,
                                   .seconds = seconds(saved->took),
                                   .longest_pause_seconds = seconds(saved->longest_pause)}));
  } else {
    counters_.refusals.fetch_add(1, std::memory_order_relaxed);
    connection_.Refuse(header, saved.status());
  }
  connection_.Flush();
}

Status LaneSession::HandleRestore(const wire::Frame& frame) {
  EDL_ASSIGN_OR_RETURN(auto restore, Read<wire::Restore>(frame));
  EDL_RETURN_IF_ERROR(NoTensors(frame));
  if (restore.incarnation != job::PsIncarnation() && restore.incarnation != serving_.incarnation) {
    return FailedPrecondition(
        "the restore is for incarnation {} of this server, and this is incarnation {}",
        restore.incarnation, serving_.incarnation);
  }
  // A request of a dead master may arrive after one of its successor.
  if (restore.ps_epoch < serving_.restore_epoch) {
    return FailedPrecondition("the restore is for epoch {}, and epoch {} has begun",
                              restore.ps_epoch, serving_.restore_epoch);
  }
  EDL_RETURN_IF_ERROR(CheckRestorable());
  serving_.restore_epoch = restore.ps_epoch;
  EDL_RETURN_IF_ERROR(
      restorer_.Begin(lane_.state().buckets, std::move(restore.paths),
                      restore.with_watermarks ? RestoreMode::kResume : RestoreMode::kParametersOnly,
                      [this, alive = alive_, header = frame.header](Result<LaneState> restored) {
                        if (*alive) OnRestored(header, std::move(restored));
                      }));
  restores_ = true;
  return Ok();
}

Status LaneSession::CheckRestorable() const {
  if (saver_.running()) return FailedPrecondition("a save of this lane is running");
  if (!lane_.trained()) return Ok();
  return FailedPrecondition(
      "this lane was trained since it started or was restored: restart its server to restore it");
}

void LaneSession::OnRestored(const wire::FrameHeader& header, Result<LaneState> restored) {
  restores_ = false;
  // The lane may have been trained meanwhile.
  const Status status = restored.ok() ? CheckRestorable() : restored.status();
  if (status.ok()) {
    lane_.Adopt(*std::move(restored));
    connection_.Answer(header,
                       wire::Encode(wire::RestoreAnswer{.rows = lane_.state().parameters.rows()}));
  } else {
    counters_.refusals.fetch_add(1, std::memory_order_relaxed);
    connection_.Refuse(header, status);
  }
  connection_.Flush();
}

Status LaneSession::HandleServe(const wire::Frame& frame) {
  EDL_ASSIGN_OR_RETURN(const auto serve, Read<wire::Serve>(frame));
  EDL_RETURN_IF_ERROR(NoTensors(frame));
  if (!serving_.managed) return FailedPrecondition("this server was not started with --managed");
  if (serve.incarnation != serving_.incarnation) {
    return FailedPrecondition(
        "the permission to serve is for incarnation {} of this server, and this is {}",
        serve.incarnation, serving_.incarnation);
  }
  if (!serving_.serves && serve.ps_epoch < serving_.restore_epoch) {
    return FailedPrecondition("epoch {} is over: the server was restored for epoch {}",
                              serve.ps_epoch, serving_.restore_epoch);
  }
  if (restorer_.running()) return FailedPrecondition("a restore of this lane is running");
  EDL_ASSIGN_OR_RETURN(const checkpoint::ShardSet covered,
                       checkpoint::ShardSet::FromJson(serve.covered));
  NoteMaster();
  lane_.state().watermarks.RaiseFloor(serve.floor);
  lane_.state().watermarks.Drop(covered);
  serving_.ps_epoch = std::max(serving_.ps_epoch, serve.ps_epoch);
  serving_.serves = true;
  serving_.may_push = serving_.may_push || serve.may_push;
  serving_.released = serving_.released || serve.released;
  connection_.Answer(frame.header, {});
  serving_.on_change();
  return Ok();
}

void LaneSession::NoteMaster() {
  serving_.last_contact = clock_.Now();
  if (!std::exchange(serving_.fenced, false)) return;
  LOG_INFO("the master is in contact again: this lane accepts pushes again");
  serving_.on_change();
}

Status LaneSession::HandleState(const wire::Frame& frame) {
  EDL_RETURN_IF_ERROR(NoTensors(frame));
  NoteMaster();
  const LaneState& state = lane_.state();
  const auto [least, most] = state.rounds.ContributedBounds();
  connection_.Answer(frame.header,
                     wire::Encode(wire::StateAnswer{.ps_epoch = serving_.ps_epoch,
                                                    .rows = state.parameters.rows(),
                                                    .bytes = state.parameters.bytes(),
                                                    .evicted = state.parameters.evicted(),
                                                    .rows_pulled = counters_.rows_pulled,
                                                    .rows_pushed = counters_.rows_pushed,
                                                    .opens_waiting = serving_.opens_waiting,
                                                    .leaving = serving_.leaving,
                                                    .least_contributed = least,
                                                    .most_contributed = most,
                                                    .saved_bytes = counters_.saved_bytes,
                                                    .restored_bytes = counters_.restored_bytes}));
  return Ok();
}

}  // namespace edl::ps
