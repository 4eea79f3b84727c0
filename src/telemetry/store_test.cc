#include "telemetry/store.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::telemetry {
namespace {

using std::chrono::seconds;

constexpr int64_t kStart = 1'800'000'000;
constexpr int64_t kDay = 86400;

// A store whose clocks a test moves.
struct Clocked {
  Store store;
  Time now{seconds(500)};
  int64_t wall = kStart;

  void Pass(int64_t time) {
    now += seconds(time);
    wall += time;
    store.Advance(now, WallTime(seconds(wall)));
  }
};

// What a database has after the changes of a store.
struct Storage {
  std::map<uint8_t, StoredSeries> series;
  std::map<std::pair<int, int>, StoredFrame> frames;

  void Take(Store& store) {
    Stored changes = store.TakeChanges();
    for (StoredSeries& row : changes.series) series[row.id.value()] = std::move(row);
    for (StoredFrame& row : changes.frames) frames[{row.level, row.slot}] = std::move(row);
  }
  Stored All() const {
    Stored all;
    for (const auto& [id, row] : series) all.series.push_back(row);
    for (const auto& [place, row] : frames) all.frames.push_back(row);
    return all;
  }
  size_t bytes() const {
    size_t sum = 0;
    for (const auto& [place, row] : frames) sum += row.points.size() + 32;
    return sum;
  }
};

struct Sample {
  int64_t time = 0;
  float value = 0;
  int64_t step = -1;
};

std::vector<Curve::Point> CurveOf(const Store& store, const std::string& name, Query query = {}) {
  query.series = {name};
  const Curves curves = store.Read(query);
  return curves.series.empty() ? std::vector<Curve::Point>() : curves.series[0].points;
}

// Each point of the curve has the values of all samples from its time to that of the next point.
void ExpectMadeOf(const std::vector<Curve::Point>& curve, const std::vector<Sample>& samples) {
  ASSERT_FALSE(curve.empty());
  auto sample = std::ranges::lower_bound(samples, curve.front().time, {}, &Sample::time);
  for (size_t i = 0; i < curve.size(); ++i) {
    Point expected{.series = curve[i].values.series};
    const int64_t end =
        i + 1 < curve.size() ? curve[i + 1].time : std::numeric_limits<int64_t>::max();
    ASSERT_LT(curve[i].time, end) << "points are in the order of time";
    for (; sample != samples.end() && sample->time < end; ++sample) {
      expected.Add(sample->value, sample->step);
    }
    ASSERT_EQ(curve[i].values, expected) << "point " << i << " at " << curve[i].time;
  }
}

TEST(Store, KeepsEachSecondOfTheLastMinutes) {
  Clocked clocked;
  const SeriesId loss = *clocked.store.Define("loss", "");
  for (int i = 0; i < 100; ++i) {
    clocked.Pass(1);
    clocked.store.Add(loss, i, int64_t{i} * 10);
  }

  const auto curve = CurveOf(clocked.store, "loss");

  ASSERT_EQ(curve.size(), 100);
  EXPECT_EQ(curve[7].time, kStart + 8);
  EXPECT_EQ(curve[7].values.last, 7);
  EXPECT_EQ(curve[7].values.step, 70);
}

TEST(Store, HasAGapWhereASeriesHasNoValue) {
  Clocked clocked;
  const SeriesId loss = *clocked.store.Define("loss", "");
  const SeriesId other = *clocked.store.Define("other", "");
  for (int i = 0; i < 20; ++i) {
    clocked.Pass(1);
    clocked.store.Add(other, i);
    if (i < 5 || i > 12) clocked.store.Add(loss, i);
  }

  const auto curve = CurveOf(clocked.store, "loss");

  ASSERT_EQ(curve.size(), 12);
  EXPECT_EQ(curve[5].time - curve[4].time, 9);
}

// Mostly one sample a second, with pauses of all lengths.
TEST(Store, GivesCurvesOfMonthsThatAreMadeOfAllSamplesInAFixedBudget) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Clocked clocked;
    const SeriesId series = *clocked.store.Define("rows", "rows");
    std::vector<Sample> samples;
    while (clocked.wall < kStart + 90 * kDay) {
      const uint32_t draw = random() % 1000;
      clocked.Pass(draw < 990 ? 1 : draw < 998 ? random() % 600 : random() % 40'000);
      for (uint32_t n = random() % 3; n > 0; --n) {
        const auto value = static_cast<float>(random() % 100'000);
        const int64_t step = random() % 2 == 0 ? -1 : static_cast<int64_t>(samples.size());
        clocked.store.Add(series, value, step);
        samples.push_back({clocked.wall, value, step});
      }
      if (random() % 10'000 == 0) {
        ExpectMadeOf(CurveOf(clocked.store, "rows", {.max_points = 1000}), samples);
        ExpectMadeOf(CurveOf(clocked.store, "rows", {.max_points = 200}), samples);
        ASSERT_LE(clocked.store.bytes(), Store::kMostBytes);
        if (HasFatalFailure()) return;
      }
    }
    const auto curve = CurveOf(clocked.store, "rows", {.max_points = 1000});
    EXPECT_LE(curve.front().time, samples.front().time) << "the curve covers the whole life";
    EXPECT_GT(curve.size(), 500);
    EXPECT_LE(CurveOf(clocked.store, "rows", {.max_points = 60}).size(), 60);
  }
}

TEST(Store, StaysInItsBudgetWithTheMostAndTheLargestPoints) {
  Clocked clocked;
  Storage storage;
  std::vector<SeriesId> all;
  for (size_t i = 0; i < kMostSeries; ++i) {
    all.push_back(*clocked.store.Define(std::string(80, 'x') + std::to_string(i), "rows/s"));
  }
  // Two seconds in each bucket of level 8, so that the frames of all levels are full and large.
  for (int bucket = 0; bucket < 3 * Store::kFramesPerLevel; ++bucket) {
    clocked.Pass(Store::WidthOf(Store::kLevels - 1) - 7);
    for (const int64_t passed : {0, 1, 1, 5}) {
      clocked.Pass(passed);
      for (const SeriesId series : all) {
        for (const double value : {1.0, 3.0, 2.0}) {
          clocked.store.Add(series, value, Point::kMostStep);
        }
        clocked.store.Add(series, std::numeric_limits<double>::quiet_NaN());
      }
    }
    storage.Take(clocked.store);
  }

  EXPECT_GT(clocked.store.bytes(), size_t{3} << 20) << "all frames are in use";
  EXPECT_LE(clocked.store.bytes(), Store::kMostBytes);
  EXPECT_LE(storage.bytes(), Store::kMostBytes);
  EXPECT_EQ(storage.frames.size(), size_t{Store::kLevels} * Store::kFramesPerLevel);
}

TEST(Store, ContinuesAfterARestartAtAnyTimeWithAllButTheOpenSecond) {
  std::mt19937 random(7);
  Clocked clocked;
  Storage storage;
  std::vector<Sample> samples;
  const SeriesId first = *clocked.store.Define("first", "");
  for (int life = 0; life < 60; ++life) {
    const uint32_t length = 1 + random() % 700;
    for (uint32_t i = 0; i < length; ++i) {
      clocked.Pass(random() % 50 == 0 ? random() % 300 : 1);
      const auto value = static_cast<float>(random() % 1000);
      clocked.store.Add(first, value);
      samples.push_back({clocked.wall, value});
    }
    storage.Take(clocked.store);
    const int64_t open = clocked.store.second();
    std::erase_if(samples, [&](const Sample& sample) { return sample.time == open; });

    Clocked next{.now = Time(seconds(3)), .wall = clocked.wall};
    ASSERT_EQ(next.store.Load(storage.All()), Ok());
    ExpectMadeOf(CurveOf(next.store, "first", {.max_points = 1000}), samples);
    ExpectMadeOf(CurveOf(next.store, "first", {.max_points = 150}), samples);
    if (HasFatalFailure()) return;
    EXPECT_EQ(next.store.Define("first", ""), first);
    next.Pass(1);
    std::swap(clocked, next);
  }
}

TEST(Store, CountsNothingTwiceAfterARestartIfFramesWereNotStored) {
  Clocked clocked;
  Storage storage;
  const SeriesId loss = *clocked.store.Define("loss", "");
  for (int second = 1; second <= 6; ++second) {
    clocked.Pass(1);
    if (second == 3 || second == 6) storage.Take(clocked.store);
    // The frames of seconds 3 and 4, and of the bucket of 4 s that contains seconds 1 to 3.
    if (second == 5) (void)clocked.store.TakeChanges();
    clocked.store.Add(loss, second);
  }

  Store next;
  ASSERT_EQ(next.Load(storage.All()), Ok());

  for (const size_t max_points : {9, 300}) {
    uint32_t count = 0;
    for (const auto& point : CurveOf(next, "loss", {.max_points = max_points})) {
      count += point.values.count;
    }
    EXPECT_EQ(count, 3) << "seconds 1, 2 and 5, with at most " << max_points << " points";
  }
}

TEST(Store, LosesNothingIfTheLastSecondIsClosed) {
  Clocked clocked;
  Storage storage;
  const SeriesId loss = *clocked.store.Define("loss", "");
  clocked.Pass(1);
  clocked.store.Add(loss, 4);
  clocked.store.CloseSecond();
  storage.Take(clocked.store);

  Store next;
  ASSERT_EQ(next.Load(storage.All()), Ok());

  ASSERT_EQ(CurveOf(next, "loss").size(), 1);
  EXPECT_EQ(CurveOf(next, "loss")[0].values.last, 4);
  clocked.Pass(0);
  clocked.store.Add(loss, 5);
  const auto curve = CurveOf(clocked.store, "loss");
  ASSERT_EQ(curve.size(), 2) << "a closed second gets no more values";
  EXPECT_EQ(curve[1].time, curve[0].time + 1);
}

TEST(Store, TakesEachChangeOnce) {
  Clocked clocked;
  const SeriesId loss = *clocked.store.Define("loss", "");
  clocked.Pass(1);
  clocked.store.Add(loss, 1);
  EXPECT_EQ(clocked.store.TakeChanges().series.size(), 1);
  clocked.Pass(1);

  const Stored changes = clocked.store.TakeChanges();

  ASSERT_EQ(changes.frames.size(), 1);
  EXPECT_EQ(changes.frames[0].start, kStart + 1);
  EXPECT_TRUE(clocked.store.TakeChanges().empty());
}

TEST(Store, GoesOnAtTheSameSpeedWhenTheWallClockIsSetBack) {
  Clocked clocked;
  const SeriesId loss = *clocked.store.Define("loss", "");
  clocked.Pass(1);
  clocked.store.Add(loss, 1);

  clocked.wall -= 3600;
  for (int i = 0; i < 10; ++i) {
    clocked.Pass(1);
    clocked.store.Add(loss, 2);
  }

  const auto curve = CurveOf(clocked.store, "loss");
  ASSERT_EQ(curve.size(), 11);
  EXPECT_EQ(curve.front().time, kStart + 1);
  EXPECT_EQ(curve.back().time, kStart + 11);
}

TEST(Store, HasAGapWhenTheWallClockIsSetFarForward) {
  Clocked clocked;
  Storage storage;
  const SeriesId loss = *clocked.store.Define("loss", "");
  clocked.Pass(1);
  clocked.store.Add(loss, 1);
  clocked.wall += 5000 * kDay;
  clocked.Pass(1);
  clocked.store.Add(loss, 2);
  clocked.wall -= 5000 * kDay;
  clocked.Pass(1);
  clocked.store.Add(loss, 3);
  clocked.Pass(1);
  storage.Take(clocked.store);

  // The next process has the right time, which is before the newest frame.
  Clocked next{.wall = clocked.wall};
  ASSERT_EQ(next.store.Load(storage.All()), Ok());
  next.Pass(1);
  next.store.Add(loss, 4);

  const auto curve = CurveOf(next.store, "loss");
  ASSERT_EQ(curve.size(), 4);
  EXPECT_EQ(curve[1].time, curve[0].time + 5000 * kDay + 1);
  EXPECT_EQ(curve[2].time, curve[1].time + 1);
  EXPECT_EQ(curve[3].values.last, 4);
  EXPECT_GT(curve[3].time, curve[2].time);
}

TEST(Store, AcceptsAnyClock) {
  Store store;
  const SeriesId loss = *store.Define("loss", "");
  store.Advance(Time::max(), WallTime::min());
  store.Add(loss, 1);
  store.Advance(Time::max(), WallTime::max());
  store.Add(loss, 2);
  store.Advance(Time(), WallTime());
  store.Add(loss, 3);

  EXPECT_EQ(CurveOf(store, "loss").size(), 2);
}

TEST(Store, DropsSeriesThatHaveNoRoomAndCountsThem) {
  Store store;
  for (size_t i = 0; i < kMostSeries; ++i) ASSERT_TRUE(store.Define(std::to_string(i), ""));

  EXPECT_FALSE(store.Define("too many", ""));
  EXPECT_FALSE(store.Define("too many", ""));
  EXPECT_FALSE(store.Define("another", ""));

  EXPECT_EQ(store.dropped_series(), 2);
  EXPECT_TRUE(store.Define("5", ""));
  EXPECT_EQ(store.Read({}).dropped_series, 2);
}

TEST(Store, CutsLongNames) {
  Store store;
  ASSERT_TRUE(store.Define(fmt::format("\n{:a>100000}", ""), "u"));

  EXPECT_LE(store.Read({}).series.at(0).name.size(), Store::kLongestName);
}

TEST(Store, ReadsOnlyWhatWasAskedFor) {
  Clocked clocked;
  const SeriesId a = *clocked.store.Define("a", "");
  const SeriesId b = *clocked.store.Define("b", "");
  for (int i = 0; i < 3000; ++i) {
    clocked.Pass(1);
    clocked.store.Add(a, i);
    clocked.store.Add(b, i);
  }

  const Curves curves = clocked.store.Read(
      {.series = {"b", "unknown"}, .from = clocked.wall - 49, .to = clocked.wall + 1});

  ASSERT_EQ(curves.series.size(), 1);
  EXPECT_EQ(curves.series[0].name, "b");
  EXPECT_EQ(curves.series[0].points.size(), 50) << "each second";
}

TEST(Store, KnowsTheHighestStepOfSeriesThatBeginWithAWord) {
  Clocked clocked;
  for (const auto& [name, step] :
       std::map<std::string, int64_t>{{"a.x", 7}, {"a.y", 9}, {"b", 20}}) {
    clocked.Pass(1);
    clocked.store.Add(*clocked.store.Define(name, ""), 1, step);
  }

  EXPECT_EQ(clocked.store.HighestStep("a."), 9);
  EXPECT_EQ(clocked.store.HighestStep("c"), -1);
}

TEST(Store, RejectsStoredDataThatIsDamagedAndStaysEmpty) {
  Clocked clocked;
  Storage storage;
  const SeriesId loss = *clocked.store.Define("loss", "");
  for (int i = 0; i < 100; ++i) {
    clocked.Pass(1);
    clocked.store.Add(loss, i);
  }
  storage.Take(clocked.store);
  const Stored good = storage.All();
  ASSERT_EQ(Store().Load(good), Ok());

  std::vector<Stored> bad(11, good);
  bad[0].series.clear();
  bad[1].series[0].id = SeriesId(9);
  bad[2].series.push_back(bad[2].series[0]);
  bad[3].frames[0].level = Store::kLevels;
  bad[4].frames[0].level = -1;
  bad[5].frames[0].slot = Store::kFramesPerLevel;
  bad[6].frames[0].start = -4;
  bad[7].frames[0].start = std::numeric_limits<int64_t>::max();
  bad[8].frames[0].start = bad[8].frames[1].start;
  bad[9].frames[0].points = "?";
  bad[10].frames.back().start += 1;
  for (size_t i = 0; i < bad.size(); ++i) {
    Store store;
    EXPECT_EQ(store.Load(bad[i]).code(), Code::kDataLoss) << i;
    EXPECT_TRUE(store.Read({}).series.empty()) << i;
    EXPECT_TRUE(store.TakeChanges().empty()) << i;
  }
}

}  // namespace
}  // namespace edl::telemetry
