#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace edl {

// A histogram of durations, with bounds at powers of two of a microsecond. One thread calls Add;
// Read is thread-safe.
class Histogram {
 public:
  static constexpr size_t kBounds = 22;  // the last is about 2 s; longer durations only raise count

  struct Reading {
    std::array<uint64_t, kBounds> counts{};  // [i]: above 2^(i-1) us, at most 2^i us
    uint64_t count = 0;                      // of all durations
    uint64_t micros = 0;                     // the sum of all durations
  };

  void Add(Duration took) {
    const auto micros =
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    const auto bound = static_cast<size_t>(micros <= 1 ? 0 : std::bit_width(micros - 1));
    if (bound < kBounds) Raise(counts_[bound], 1);
    Raise(count_, 1);
    Raise(micros_, micros);
  }
  Reading Read() const {
    Reading reading{.count = count_, .micros = micros_};
    for (size_t i = 0; i < kBounds; ++i) reading.counts[i] = counts_[i];
    return reading;
  }

 private:
  // Only one thread writes, so no atomic read-modify-write instruction is needed.
  static void Raise(std::atomic<uint64_t>& number, uint64_t by) {
    number.store(number.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::array<std::atomic<uint64_t>, kBounds> counts_{};
  std::atomic<uint64_t> count_ = 0;
  std::atomic<uint64_t> micros_ = 0;
};

}  // namespace edl
