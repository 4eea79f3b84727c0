#include "ps/lane_restorer.h"

#include "base/mutex.h"
#include "checkpoint/part_file.h"

namespace edl::ps {
namespace {

// Limit of chunks that were read and that the lane has not taken yet.
constexpr size_t kMostWaiting = 4;
// Limit of threads, most of them of cancelled restores whose storage does not answer.
constexpr size_t kMostThreads = 8;

}  // namespace

struct LaneRestorer::Run {
  std::vector<std::string> paths;
  BucketRange buckets;
  std::atomic<bool> exited = false;

  Mutex mutex;
  CondVar changed;
  size_t waiting GUARDED_BY(mutex) = 0;
  bool cancelled GUARDED_BY(mutex) = false;

  // Whether the part with that head has buckets of the lane. True for an invalid head, which the
  // LaneCheckpointReader then rejects.
  bool Needs(const checkpoint::Chunk& head) const {
    const Result<BucketRange> range = LaneCheckpointReader::BucketsOf(head);
    return !range.ok() || range->Overlaps(buckets);
  }
  void Cancel() {
    const MutexLock lock(mutex);
    cancelled = true;
    changed.NotifyAll();
  }
  void TakenOne() {
    const MutexLock lock(mutex);
    --waiting;
    changed.NotifyAll();
  }
  // Waits until the lane can take one more chunk. False: the restore was cancelled.
  bool WaitForRoom() {
    const MutexLock lock(mutex);
    while (waiting >= kMostWaiting && !cancelled) changed.Wait(mutex);
    ++waiting;
    return !cancelled;
  }
};

LaneRestorer::LaneRestorer(EventLoop& lane_loop, checkpoint::CheckpointFiles files,
                           std::atomic<uint64_t>* restored_bytes)
    : loop_(lane_loop), files_(std::move(files)), restored_bytes_(restored_bytes) {}

LaneRestorer::~LaneRestorer() {
  *alive_ = false;
  for (auto& [run, thread] : threads_) run->Cancel();
  for (auto& [run, thread] : threads_) thread.join();
}

void LaneRestorer::JoinFinished() {
  std::erase_if(threads_, [](auto& entry) {
    if (!entry.first->exited) return false;
    entry.second.join();
    return true;
  });
}

Status LaneRestorer::Begin(const BucketRange& buckets, std::vector<std::string> paths,
                           RestoreMode mode, OnDone on_done) {
  JoinFinished();
  if (threads_.size() >= kMostThreads) {
    return ResourceExhausted(
        "{} cancelled restores of this lane still wait for their storage: try again later",
        threads_.size());
  }
  if (running()) {
    run_->Cancel();
    End(Aborted("another restore of this lane started"));
  }
  run_ = std::make_shared<Run>();
  run_->paths = std::move(paths);
  run_->buckets = buckets;
  reader_.emplace(buckets, mode);
  on_done_ = std::move(on_done);
  threads_.emplace_back(run_, [this, run = run_] {
    Read(run);
    run->exited = true;
  });
  return Ok();
}

void LaneRestorer::Cancel() {
  if (!running()) return;
  run_->Cancel();
  run_.reset();
  reader_.reset();
  on_done_ = nullptr;
}

// Runs on the reading thread.
void LaneRestorer::Read(const std::shared_ptr<Run>& run) {
  const auto post = [&](std::function<void()> work) {
    loop_.Post([this, run, alive = alive_, work = std::move(work)] {
      if (*alive && run == run_) work();
    });
  };
  const Status status = [&] {
    for (const std::string& path : run->paths) {
      EDL_ASSIGN_OR_RETURN(const auto part,
                           checkpoint::PartReader::Open(path, restored_bytes_, files_));
      while (true) {
        EDL_ASSIGN_OR_RETURN(std::optional<checkpoint::Chunk> chunk, part->Next());
        if (!chunk.has_value()) break;
        if (chunk->kind == checkpoint::ChunkKind::kHead && !run->Needs(*chunk)) break;
        if (!run->WaitForRoom()) return Ok();
        // A posted function must be copyable, and a chunk is not.
        const auto shared = std::make_shared<checkpoint::Chunk>(std::move(*chunk));
        post([this, run, shared, path] { Take(run, *shared, path); });
      }
    }
    return Ok();
  }();
  post([this, status] { End(status); });
}

void LaneRestorer::Take(const std::shared_ptr<Run>& run, const checkpoint::Chunk& chunk,
                        const std::string& path) {
  run->TakenOne();
  if (chunk.kind == checkpoint::ChunkKind::kHead) reader_->BeginPart();
  if (const Status status = reader_->Take(chunk, path); !status.ok()) {
    run->Cancel();
    End(status);
  }
}

void LaneRestorer::End(const Status& status) {
  using Coverage = LaneCheckpointReader::Coverage;
  const auto coverage = std::exchange(run_, nullptr)->paths.empty() ? Coverage::kEmptyCheckpoint
                                                                    : Coverage::kComplete;
  Result<LaneState> restored = status.ok() ? std::move(*reader_).Finish(coverage) : status;
  reader_.reset();
  std::exchange(on_done_, nullptr)(std::move(restored));
}

}  // namespace edl::ps
