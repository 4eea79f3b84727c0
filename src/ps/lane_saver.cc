#include "ps/lane_saver.h"

#include <algorithm>
#include <utility>

#include "checkpoint/part_file.h"

namespace edl::ps {
namespace {

// How long the lane makes chunks between two requests.
constexpr Duration kSlice = std::chrono::microseconds(200);

}  // namespace

struct LaneSaver::Disk {
  std::filesystem::path path;
  checkpoint::CheckpointFiles files;
  std::unique_ptr<checkpoint::PartWriter> writer;
  bool created = false;  // by this save, which therefore may remove it
  Status status;

  void Create() {
    Result<checkpoint::CheckpointFiles::Created> file = files.Create(path);
    status = file.status();
    if (!file.ok()) return;
    created = true;
    Result<std::unique_ptr<checkpoint::PartWriter>> begun =
        checkpoint::PartWriter::Begin(path, *std::move(file));
    status = begun.status();
    if (begun.ok()) writer = *std::move(begun);
  }
  void Write(const checkpoint::Chunk& chunk) {
    if (status.ok() && writer == nullptr) Create();
    if (status.ok()) status = writer->Write(chunk);
  }
  Result<uint64_t> Finish() {
    if (!status.ok()) return status;
    return writer->Finish();
  }
  void Remove() {
    writer.reset();
    if (status.ok()) status = Cancelled("the save to {} was cancelled", path.string());
    if (std::exchange(created, false)) files.Remove(path);
  }
};

LaneSaver::LaneSaver(LaneState& state, EventLoop& lane_loop, EventLoop& disk_loop,
                     const Clock& clock, std::function<void()> on_room, Options options)
    : options_(std::move(options)),
      state_(state),
      lane_loop_(lane_loop),
      disk_loop_(disk_loop),
      clock_(clock),
      on_room_(std::move(on_room)) {
  lane_loop_.SetWork([this] { return DoSlice(); });
}

LaneSaver::~LaneSaver() {
  *alive_ = false;
  lane_loop_.SetWork(nullptr);
  if (disk_ != nullptr) disk_loop_.Post([disk = disk_] { disk->Remove(); });
}

void LaneSaver::Cancel() {
  if (disk_ == nullptr) return;
  const Status cancelled = Cancelled("the save to {} was cancelled", disk_->path.string());
  disk_loop_.Post([disk = disk_] { disk->Remove(); });
  End(cancelled);
}

Status LaneSaver::Begin(const std::filesystem::path& path, OnDone on_done) {
  if (disk_ != nullptr) {
    return FailedPrecondition("a save of this lane to {} is running", disk_->path.string());
  }
  disk_ = std::make_shared<Disk>();
  disk_->path = path;
  disk_->files = options_.files;
  on_done_ = std::move(on_done);
  began_ = clock_.Now();
  longest_pause_ = {};
  writer_ = std::make_unique<LaneCheckpointWriter>(
      state_, [this](checkpoint::Chunk chunk) { Give(std::move(chunk)); },
      [this] { return TakeSpare(); });
  longest_pause_ = clock_.Now() - began_;
  return Ok();
}

wire::Buffer LaneSaver::TakeSpare() {
  if (spares_.empty()) return {};
  wire::Buffer spare = std::move(spares_.back());
  spares_.pop_back();
  return spare;
}

void LaneSaver::Give(checkpoint::Chunk chunk) {
  const size_t bytes = chunk.content.size();
  waiting_bytes_ += bytes;
  // A posted function must be copyable, and a chunk is not.
  const auto shared = std::make_shared<checkpoint::Chunk>(std::move(chunk));
  disk_loop_.Post([this, shared, bytes, disk = disk_, alive = alive_, &loop = lane_loop_] {
    disk->Write(*shared);
    loop.Post([this, shared, bytes, status = disk->status, disk, alive] {
      if (!*alive || disk != disk_) return;
      if (shared->kind == checkpoint::ChunkKind::kRows)
        spares_.push_back(std::move(shared->content));
      OnWritten(bytes, status);
    });
  });
}

bool LaneSaver::DoSlice() {
  if (writer_ == nullptr || waiting_bytes_ > options_.buffer_bytes / 2) return false;
  const Time begin = clock_.Now();
  const bool was_full = IsFull();
  const bool more = writer_->SaveSome([&] { return clock_.Now() - begin >= kSlice; });
  longest_pause_ = std::max<Duration>(longest_pause_, clock_.Now() - begin);
  if (!more) {
    writer_.reset();
    Finish();
  }
  if (was_full && !IsFull()) on_room_();
  return more;
}

void LaneSaver::OnWritten(size_t bytes, const Status& status) {
  const bool was_full = IsFull();
  waiting_bytes_ -= bytes;
  if (options_.saved_bytes != nullptr && status.ok()) options_.saved_bytes->fetch_add(bytes);
  if (!status.ok()) {
    disk_loop_.Post([disk = disk_] { disk->Remove(); });
    End(status);
    return;
  }
  if (was_full && !IsFull()) on_room_();
}

void LaneSaver::Finish() {
  disk_loop_.Post([this, disk = disk_, alive = alive_, &loop = lane_loop_] {
    const Result<uint64_t> finished = disk->Finish();
    if (!finished.ok()) disk->Remove();
    disk->writer.reset();
    loop.Post([this, finished, disk, alive] {
      if (!*alive || disk != disk_) return;
      if (!finished.ok()) return End(finished.status());
      End(SaveReport{
          .bytes = *finished, .took = clock_.Now() - began_, .longest_pause = longest_pause_});
    });
  });
}

void LaneSaver::End(const Result<SaveReport>& result) {
  writer_.reset();
  disk_.reset();
  waiting_bytes_ = 0;
  spares_.clear();
  std::exchange(on_done_, nullptr)(result);
  on_room_();
}

}  // namespace edl::ps
