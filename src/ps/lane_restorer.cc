#include "ps/lane_restorer.h"

#include "base/mutex.h"
#include "checkpoint/part_file.h"

namespace edl::ps {
namespace {

// Chunks that were read and that the lane has not taken yet.
constexpr size_t kMostWaiting = 4;
// Restores that were given up while their storage does not answer.
constexpr size_t kMostThreads = 8;

}  // namespace

struct LaneRestorer::Run {
  std::vector<std::string> paths;
  wire::Bucket first = 0;
  size_t end = 0;
  bool with_marks = true;
  std::atomic<bool> exited = false;

  Mutex mutex;
  CondVar changed;
  size_t waiting GUARDED_BY(mutex) = 0;
  bool cancelled GUARDED_BY(mutex) = false;

  // Whether the part of that head has buckets of the lane. A head that cannot be read is left to
  // the lane, which refuses it.
  bool Meets(const checkpoint::Chunk& head) const {
    const Result<Lane::BucketRange> range = Lane::RangeOf(head);
    return !range.ok() || (range->first < end && range->end > first);
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
  // Until the lane can take one more chunk. False: the restore was given up.
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

Status LaneRestorer::Begin(std::unique_ptr<Lane> fresh, std::vector<std::string> paths,
                           bool with_marks, OnDone on_done) {
  JoinFinished();
  if (threads_.size() >= kMostThreads) {
    return ResourceExhausted("{} restores of this lane still wait for their storage",
                             threads_.size());
  }
  if (running()) {
    run_->Cancel();
    End(Aborted("another restore of this lane began"));
  }
  run_ = std::make_shared<Run>();
  run_->paths = std::move(paths);
  run_->first = fresh->first();
  run_->end = fresh->end();
  run_->with_marks = with_marks;
  fresh_ = std::move(fresh);
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
  fresh_.reset();
  on_done_ = nullptr;
}

// On the thread that reads.
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
        if (chunk->kind == checkpoint::ChunkKind::kHead && !run->Meets(*chunk)) break;
        if (!run->WaitForRoom()) return Ok();
        // A function that is posted can be copied, and a chunk cannot.
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
  if (chunk.kind == checkpoint::ChunkKind::kHead) part_ = {.with_marks = run->with_marks};
  if (const Status status = fresh_->Take(chunk, part_, path); !status.ok()) {
    run->Cancel();
    End(status);
  }
}

void LaneRestorer::End(const Status& status) {
  const bool had_parts = !std::exchange(run_, nullptr)->paths.empty();
  const Status ended = status.ok() ? fresh_->EndRestore(had_parts) : status;
  std::unique_ptr<Lane> fresh = std::move(fresh_);
  const OnDone on_done = std::exchange(on_done_, nullptr);
  if (ended.ok()) {
    on_done(std::move(fresh));
  } else {
    on_done(ended);
  }
}

}  // namespace edl::ps
