#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/curves.h"
#include "telemetry/frame.h"
#include "telemetry/stored.h"

#include "base/clock.h"
#include "base/status.h"

namespace edl::telemetry {

// Time series in at most kMostBytes of memory, and of storage, however long the job runs: recent
// points are fine, old ones are coarse. docs/adr/0032-telemetry-as-frames.md.
//
// Level k has buckets of 4^k seconds. It keeps the frames of the last kFramesPerLevel buckets that
// have values. A bucket is open until a value arrives for a later one. It is then kept as a frame
// and added to the open bucket of the level above.
//
// The time of the store never runs backwards. It is the wall clock, or, while the wall clock is
// behind it (because it was set back, or because a former process had another clock), advances by
// the time that passes.
//
// Confined.
class Store {
 public:
  static constexpr int kLevels = 9;
  static constexpr int kFramesPerLevel = 128;
  static constexpr size_t kMostBytes = size_t{4} << 20;
  static constexpr size_t kLongestName = 96;  // bytes; longer names are cut
  static constexpr int64_t WidthOf(int level) { return int64_t{1} << (2 * level); }

  // Continues what another store had in storage. REQUIRES: this store is new. DataLoss: `stored` is
  // damaged, and this store stays empty.
  Status Load(const Stored& stored);

  // Sets the time. Call it before Add.
  void Advance(Time now, WallTime wall_now);
  // The open bucket of level 0: seconds since 1970.
  int64_t second() const;

  // Returns the series with that name, new or not. nullopt: there is no room for another one.
  std::optional<SeriesId> Define(std::string_view name, std::string_view unit);
  bool IsDefined(std::string_view name) const { return by_name_.contains(name); }
  // The number of different names that had no room, as far as they are counted.
  int64_t dropped_series() const { return static_cast<int64_t>(dropped_.size()); }
  // Adds a value at the present time. `step`: of the program, or -1.
  void Add(SeriesId series, double value, int64_t step = -1);

  // Closes the open second, for the end of the job.
  void CloseSecond();
  // Returns what is new since the last call and has to be stored. Buckets that are open are not
  // part of it: Load makes them again from the frames of the levels below.
  Stored TakeChanges();

  // The curves of the series in `query`, each as fine as max_points allows; unknown names are left
  // out. A curve is coarse where only coarse frames are left. Its points do not overlap.
  Curves Read(const Query& query) const;
  // The highest step of the series whose names begin with `prefix`. -1: there is none.
  int64_t HighestStep(std::string_view prefix) const;

  // The memory that frames, open buckets and names take.
  size_t bytes() const;

 private:
  struct Frame {
    int slot = 0;
    int64_t start = 0;
    std::string points;
  };
  struct Bucket {
    int64_t start = -1;         // -1: nothing was added
    std::vector<Point> points;  // by series
  };
  struct Level {
    std::deque<Frame> frames;  // oldest first
    int next_slot = 0;
    Bucket open;
  };
  struct Series {
    std::string name;
    std::string unit;
  };
  // A frame as part of curves.
  struct Piece {
    int level = 0;
    const Frame* frame = nullptr;
  };

  Status LoadSeries(const std::vector<StoredSeries>& stored);
  Status LoadFrames(std::vector<StoredFrame> stored);
  void ReopenBuckets();
  void Close(int level);
  void Keep(int level, int64_t start, const std::vector<Point>& points);
  // Adds points of a closed bucket of the level below.
  void AddTo(int level, int64_t start, const std::vector<Point>& points);
  // The time from which on a level is complete. Before it, the level above has to be read.
  int64_t CompleteFrom(int level) const;
  // The frames of which curves consist, oldest first, with no level finer than `finest`.
  std::vector<Piece> PiecesFrom(int finest, const Query& query) const;
  // The values that are not in frames yet, as buckets of `level`.
  std::vector<Bucket> Tail(int level) const;

  std::array<Level, kLevels> levels_;
  std::vector<Series> series_;  // by id
  std::map<std::string, SeriesId, std::less<>> by_name_;
  std::set<size_t> dropped_;                // hashes of names
  size_t stored_series_ = 0;                // so many of series_ were taken by TakeChanges
  std::set<std::pair<int, int>> unstored_;  // level and slot of frames
  std::optional<Time> now_;                 // at the last Advance
  Duration time_{0};                        // since 1970
};

}  // namespace edl::telemetry
