#include "telemetry/frame.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace edl::telemetry {
namespace {

constexpr uint8_t kNotFinite = 0x80;  // in the byte of the series
constexpr uint64_t kHasStep = 1;      // in the number that contains the count
constexpr uint64_t kHasRange = 2;     // min or max differs from last
constexpr int kLongestNumber = 7;     // bytes

bool HasRange(const Point& point) { return point.min < point.last || point.last < point.max; }

// Seven bits in each byte, the lowest first. The high bit: another byte follows.
void PutNumber(std::string& out, uint64_t number) {
  for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
  out += static_cast<char>(number);
}

void PutFloat(std::string& out, float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(bits >> shift);
}

// Reads the bytes of a frame. After the first failure, everything reads as 0.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool done() const { return rest_.empty(); }
  void Fail() { ok_ = false; }

  uint8_t Byte() {
    if (rest_.empty() || !ok_) {
      ok_ = false;
      return 0;
    }
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }

  uint64_t Number() {
    uint64_t number = 0;
    for (int place = 0; place < kLongestNumber; ++place) {
      const uint8_t byte = Byte();
      number |= uint64_t{byte & 0x7FU} << (7 * place);
      if (byte >= 0x80) continue;
      if (byte == 0 && place > 0) ok_ = false;  // a shorter form exists
      return ok_ ? number : 0;
    }
    ok_ = false;
    return 0;
  }

  float Float() {
    uint32_t bits = 0;
    for (int shift = 0; shift < 32; shift += 8) bits |= uint32_t{Byte()} << shift;
    const auto value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) ok_ = false;
    return ok_ ? value : 0;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

Point ReadPoint(Reader& in) {
  const uint8_t first = in.Byte();
  Point point{.series = SeriesId(first & ~kNotFinite), .not_finite = (first & kNotFinite) != 0};
  const uint64_t head = in.Number();
  if (head >> 2 > Point::kMostCount) in.Fail();
  point.count = static_cast<uint32_t>(head >> 2);
  if (point.empty()) in.Fail();
  if (point.count > 0) {
    point.last = point.min = point.max = in.Float();
  }
  if ((head & kHasRange) != 0) {
    point.min = in.Float();
    point.max = in.Float();
    const bool ordered = point.min <= point.last && point.last <= point.max;
    if (point.count == 0 || !ordered || !HasRange(point)) in.Fail();
  }
  if ((head & kHasStep) != 0) point.step = static_cast<int64_t>(in.Number());
  return point;
}

}  // namespace

void Point::Add(double value, int64_t value_step) {
  if (value_step >= 0) step = std::min(value_step, kMostStep);
  if (!std::isfinite(value)) {
    not_finite = true;
    return;
  }
  constexpr double kLargest = std::numeric_limits<float>::max();
  last = static_cast<float>(std::clamp(value, -kLargest, kLargest));
  min = count == 0 ? last : std::min(min, last);
  max = count == 0 ? last : std::max(max, last);
  count = std::min(count + 1, kMostCount);
}

void Point::Merge(const Point& later) {
  not_finite = not_finite || later.not_finite;
  if (later.step >= 0) step = later.step;
  if (later.count == 0) return;
  last = later.last;
  min = count == 0 ? later.min : std::min(min, later.min);
  max = count == 0 ? later.max : std::max(max, later.max);
  count = std::min(count + later.count, kMostCount);
}

std::string EncodeFrame(const std::vector<Point>& points) {
  std::string out;
  for (const Point& point : points) {
    CHECK(point.series.value() < kMostSeries && !point.empty(), "an empty point is not stored");
    out += static_cast<char>(point.series.value() | (point.not_finite ? kNotFinite : 0));
    const bool range = point.count > 0 && HasRange(point);
    PutNumber(out, uint64_t{point.count} << 2 | (range ? kHasRange : 0) |
                       (point.step >= 0 ? kHasStep : 0));
    if (point.count > 0) PutFloat(out, point.last);
    if (range) {
      PutFloat(out, point.min);
      PutFloat(out, point.max);
    }
    if (point.step >= 0) PutNumber(out, static_cast<uint64_t>(point.step));
  }
  return out;
}

Result<std::vector<Point>> DecodeFrame(std::string_view bytes) {
  Reader in(bytes);
  std::vector<Point> points;
  while (!in.done()) {
    const Point point = ReadPoint(in);
    if (!in.ok()) return DataLoss("point {} of a frame of telemetry is damaged", points.size());
    // The order also limits the number of points.
    if (!points.empty() && point.series <= points.back().series) {
      return DataLoss("the points of a frame of telemetry are not sorted by series");
    }
    points.push_back(point);
  }
  return points;
}

}  // namespace edl::telemetry
