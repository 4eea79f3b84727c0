#include "telemetry/store.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/check.h"
#include "base/text.h"

namespace edl::telemetry {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
constexpr int64_t kAlways = std::numeric_limits<int64_t>::max();
// Later times do not fit into a Duration.
constexpr int64_t kLatest = 9'000'000'000;
constexpr size_t kMostDroppedNames = 1000;

// The start of the bucket of `level` that contains `second`.
int64_t BucketOf(int level, int64_t second) {
  return second & ~(Store::WidthOf(level) - 1);  // the width is a power of two
}

void Merge(std::vector<Point>& into, const std::vector<Point>& later) {
  into.resize(kMostSeries);
  for (const Point& point : later) {
    if (point.empty()) continue;
    Point& sum = into[point.series.value()];
    sum.series = point.series;
    sum.Merge(point);
  }
}

// Merges neighbours until there are at most `most` points.
void Thin(std::vector<Curve::Point>& points, size_t most) {
  if (points.size() <= most) return;
  const size_t group = (points.size() + most - 1) / most;
  std::vector<Curve::Point> thin;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i % group == 0) {
      thin.push_back(points[i]);
    } else {
      thin.back().values.Merge(points[i].values);
    }
  }
  points = std::move(thin);
}

}  // namespace

Status Store::Load(const Stored& stored) {
  CHECK(series_.empty() && levels_[0].frames.empty(), "a store loads only once");
  Status status = LoadSeries(stored.series);
  if (status.ok()) status = LoadFrames(stored.frames);
  if (!status.ok()) {
    *this = Store();
    return status;
  }
  ReopenBuckets();
  return Ok();
}

Status Store::LoadSeries(const std::vector<StoredSeries>& stored) {
  series_.resize(stored.size());
  for (const StoredSeries& row : stored) {
    if (row.id.value() >= stored.size() || stored.size() > kMostSeries ||
        row.name.size() > kLongestName || row.unit.size() > kLongestName ||
        !by_name_.emplace(row.name, row.id).second || !series_[row.id.value()].name.empty()) {
      return DataLoss("series {} of the telemetry is damaged", row.id);
    }
    series_[row.id.value()] = {row.name, row.unit};
  }
  stored_series_ = series_.size();
  return Ok();
}

Status Store::LoadFrames(std::vector<StoredFrame> stored) {
  std::ranges::sort(stored, {}, &StoredFrame::start);
  for (StoredFrame& row : stored) {
    const bool known = row.level >= 0 && row.level < kLevels && row.slot >= 0 &&
                       row.slot < kFramesPerLevel && row.start >= 0 && row.start < kLatest &&
                       BucketOf(row.level, row.start) == row.start;
    if (!known) return DataLoss("a frame of the telemetry has no place");
    Level& level = levels_.at(static_cast<size_t>(row.level));
    const bool again = !level.frames.empty() && level.frames.back().start == row.start;
    EDL_ASSIGN_OR_RETURN(const std::vector<Point> points, DecodeFrame(row.points));
    if (again || points.empty() || points.back().series.value() >= series_.size() ||
        level.frames.size() == kFramesPerLevel) {
      return DataLoss("the frame of the telemetry in slot {} of level {} is damaged", row.slot,
                      row.level);
    }
    time_ = std::max<Duration>(time_, std::chrono::seconds(row.start + WidthOf(row.level)));
    level.next_slot = (row.slot + 1) % kFramesPerLevel;
    level.frames.push_back({row.slot, row.start, std::move(row.points)});
  }
  return Ok();
}

void Store::ReopenBuckets() {
  // From the top: a frame that closes meanwhile, because rows were lost, is added above only once.
  for (int level = kLevels - 2; level >= 0; --level) {
    const std::deque<Frame>& above = levels_[static_cast<size_t>(level) + 1].frames;
    const int64_t closed = above.empty() ? kNever : above.back().start;
    for (const Frame& frame : levels_[static_cast<size_t>(level)].frames) {
      if (BucketOf(level + 1, frame.start) <= closed) continue;
      AddTo(level + 1, frame.start, *DecodeFrame(frame.points));
    }
  }
}

void Store::Advance(Time now, WallTime wall_now) {
  const Duration passed = now_ ? now - *now_ : Duration::zero();
  now_ = now;
  const Duration wall =
      std::min<Duration>(wall_now.time_since_epoch(), std::chrono::seconds(kLatest));
  if (wall >= time_) {
    time_ = wall;
  } else {
    time_ += std::max(passed, Duration::zero());
  }
  Bucket& open = levels_[0].open;
  if (open.start >= 0 && open.start != second()) Close(0);
}

int64_t Store::second() const {
  return std::chrono::duration_cast<std::chrono::seconds>(time_).count();
}

std::optional<SeriesId> Store::Define(std::string_view name, std::string_view unit) {
  std::string key = OneLine(name, kLongestName);
  if (const auto found = by_name_.find(key); found != by_name_.end()) return found->second;
  if (series_.size() == kMostSeries) {
    if (dropped_.size() < kMostDroppedNames) dropped_.insert(std::hash<std::string>()(key));
    return std::nullopt;
  }
  const SeriesId id(static_cast<uint8_t>(series_.size()));
  by_name_.emplace(key, id);
  series_.push_back({std::move(key), OneLine(unit, kLongestName)});
  return id;
}

void Store::Add(SeriesId series, double value, int64_t step) {
  CHECK(series.value() < series_.size(), "series {} is not defined", series);
  Bucket& open = levels_[0].open;
  open.start = second();
  open.points.resize(kMostSeries);
  Point& point = open.points[series.value()];
  point.series = series;
  point.Add(value, step);
}

void Store::CloseSecond() {
  if (levels_[0].open.start < 0) return;
  time_ = std::chrono::seconds(second() + 1);
  Close(0);
}

void Store::Close(int level) {
  Bucket open = std::exchange(levels_.at(static_cast<size_t>(level)).open, Bucket());
  std::erase_if(open.points, [](const Point& point) { return point.empty(); });
  if (open.points.empty()) return;
  Keep(level, open.start, open.points);
  if (level + 1 < kLevels) AddTo(level + 1, open.start, open.points);
}

void Store::Keep(int level, int64_t start, const std::vector<Point>& points) {
  Level& kept = levels_.at(static_cast<size_t>(level));
  if (kept.frames.size() == kFramesPerLevel) kept.frames.pop_front();
  // A string that is copied has no spare capacity.
  const std::string bytes = EncodeFrame(points);
  kept.frames.push_back({kept.next_slot, start, std::string(bytes)});
  unstored_.emplace(level, kept.next_slot);
  kept.next_slot = (kept.next_slot + 1) % kFramesPerLevel;
}

void Store::AddTo(int level, int64_t start, const std::vector<Point>& points) {
  Bucket& open = levels_.at(static_cast<size_t>(level)).open;
  const int64_t bucket = BucketOf(level, start);
  if (open.start >= 0 && open.start != bucket) Close(level);
  open.start = bucket;
  Merge(open.points, points);
}

Stored Store::TakeChanges() {
  Stored out;
  for (; stored_series_ < series_.size(); ++stored_series_) {
    out.series.push_back({SeriesId(static_cast<uint8_t>(stored_series_)),
                          series_[stored_series_].name, series_[stored_series_].unit});
  }
  for (int level = 0; level < kLevels; ++level) {
    for (const Frame& frame : levels_.at(static_cast<size_t>(level)).frames) {
      if (!unstored_.contains({level, frame.slot})) continue;
      out.frames.push_back({level, frame.slot, frame.start, frame.points});
    }
  }
  unstored_.clear();
  return out;
}

int64_t Store::CompleteFrom(int level) const {
  if (level + 1 == kLevels) return kNever;
  const std::deque<Frame>& own = levels_.at(static_cast<size_t>(level)).frames;
  const std::deque<Frame>& above = levels_.at(static_cast<size_t>(level) + 1).frames;
  if (own.empty()) return kAlways;
  const int64_t oldest = own.front().start;
  const int64_t bucket = BucketOf(level + 1, oldest);
  const bool dropped =
      own.size() == kFramesPerLevel || (!above.empty() && above.front().start < bucket);
  if (!dropped) return kNever;
  return bucket == oldest ? oldest : bucket + WidthOf(level + 1);
}

std::vector<Store::Piece> Store::PiecesFrom(int finest, const Query& query) const {
  std::vector<Piece> pieces;
  int64_t end = kAlways;  // later times are in pieces of finer levels
  for (int level = finest; level < kLevels; ++level) {
    if (end != kAlways && end != kNever) end = BucketOf(level, end);
    const int64_t begin = CompleteFrom(level);
    const std::deque<Frame>& frames = levels_.at(static_cast<size_t>(level)).frames;
    for (size_t i = frames.size(); i-- > 0;) {
      const Frame& frame = frames[i];
      if (frame.start < begin || frame.start >= end) continue;
      if (frame.start + WidthOf(level) <= query.from || frame.start >= query.to) continue;
      pieces.push_back({level, &frame});
    }
    end = std::min(end, begin);
  }
  std::ranges::reverse(pieces);
  return pieces;
}

std::vector<Store::Bucket> Store::Tail(int level) const {
  std::vector<Bucket> tail;
  for (int k = 0; k <= level; ++k) {
    std::vector<Bucket> wider;
    const Bucket& open = levels_.at(static_cast<size_t>(k)).open;
    if (open.start >= 0) wider.push_back(open);
    for (Bucket& bucket : tail) {  // later than `open`, or a part of its bucket
      bucket.start = BucketOf(k, bucket.start);
      if (!wider.empty() && wider.back().start == bucket.start) {
        Merge(wider.back().points, bucket.points);
      } else {
        wider.push_back(std::move(bucket));
      }
    }
    tail = std::move(wider);
  }
  return tail;
}

Curves Store::Read(const Query& query) const {
  Curves curves{.series = {}, .dropped_series = dropped_series()};
  std::array<Curve*, kMostSeries> curve_of{};
  std::vector<SeriesId> wanted;
  for (size_t id = 0; id < series_.size(); ++id) {
    const Series& series = series_[id];
    if (!query.series.empty() && std::ranges::find(query.series, series.name) == query.series.end())
      continue;
    wanted.emplace_back(static_cast<uint8_t>(id));
    curves.series.push_back({series.name, series.unit, {}});
  }
  for (size_t i = 0; i < wanted.size(); ++i) curve_of.at(wanted[i].value()) = &curves.series[i];
  const auto add = [&](int64_t start, const std::vector<Point>& points) {
    for (const Point& point : points) {
      Curve* curve = curve_of.at(point.series.value());
      if (curve != nullptr && !point.empty()) curve->points.push_back({start, point});
    }
  };

  const size_t asked = query.max_points == 0 ? Query::kDefaultPoints : query.max_points;
  const size_t most = std::min(asked, Query::kMostPoints);
  int finest = 0;
  std::vector<Piece> pieces = PiecesFrom(finest, query);
  while (pieces.size() + kLevels > most && finest + 1 < kLevels) {
    pieces = PiecesFrom(++finest, query);
  }
  for (const Piece& piece : pieces) add(piece.frame->start, *DecodeFrame(piece.frame->points));
  for (const Bucket& bucket : Tail(finest)) {
    if (bucket.start + WidthOf(finest) > query.from && bucket.start < query.to) {
      add(bucket.start, bucket.points);
    }
  }
  for (Curve& curve : curves.series) Thin(curve.points, most);
  return curves;
}

int64_t Store::HighestStep(std::string_view prefix) const {
  int64_t step = -1;
  for (const Curve& curve : Read({}).series) {
    if (!curve.name.starts_with(prefix)) continue;
    for (const Curve::Point& point : curve.points) step = std::max(step, point.values.step);
  }
  return step;
}

size_t Store::bytes() const {
  size_t sum = sizeof *this;
  for (const Level& level : levels_) {
    sum += level.open.points.capacity() * sizeof(Point);
    for (const Frame& frame : level.frames) sum += sizeof frame + frame.points.capacity();
  }
  for (const Series& series : series_) {
    sum += sizeof series + series.unit.capacity() + 2 * series.name.capacity();
  }
  return sum;
}

}  // namespace edl::telemetry
