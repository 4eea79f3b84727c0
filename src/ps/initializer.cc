#include "ps/initializer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "ps/optimizer/vectorized.h"
#include "ps/random.h"
#include "wire/placement.h"

namespace edl::ps {
namespace {

constexpr size_t kWords = 4;  // random words of one call of Philox

// How often a value beyond the limits is drawn again before it is clamped. One value in 22 is
// beyond them, so a value is clamped with probability 2^-70.
constexpr uint32_t kTries = 16;

// Two normally distributed values from two random words (Box and Muller, 1958).
std::array<float, 2> ToNormal(uint32_t first, uint32_t second) {
  // 1 - ToUnit() is in (0, 1]: the logarithm of 0 is infinite.
  const float radius = std::sqrt(-2.0F * std::log(1.0F - ToUnit(first)));
  const float angle = 2.0F * std::numbers::pi_v<float> * ToUnit(second);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

void FillUniform(uint64_t seed, uint64_t id, float least, float width, std::span<float> row) {
  for (size_t at = 0; at < row.size(); at += kWords) {
    const auto words = Philox(seed, id, at / kWords);
    for (size_t i = 0; i < std::min(kWords, row.size() - at); ++i) {
      row[at + i] = least + width * ToUnit(words[i]);
    }
  }
}

// Calls of Philox that are computed together with vector instructions.
constexpr size_t kCalls = 16;
struct Calls {
  // The counters before RunPhilox, and the random words after it. The second index is the call.
  alignas(64) std::array<std::array<uint32_t, kCalls>, kWords> words;
};

EDL_VECTORIZED void RunPhilox(uint64_t key, Calls& calls) {
  auto key0 = static_cast<uint32_t>(key);
  auto key1 = static_cast<uint32_t>(key >> 32);
  uint32_t* const w0 = calls.words[0].data();
  uint32_t* const w1 = calls.words[1].data();
  uint32_t* const w2 = calls.words[2].data();
  uint32_t* const w3 = calls.words[3].data();
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (size_t i = 0; i < kCalls; ++i) {
      const uint64_t product0 = uint64_t{kPhiloxMultiplier0} * w0[i];
      const uint64_t product1 = uint64_t{kPhiloxMultiplier1} * w2[i];
      w0[i] = static_cast<uint32_t>(product1 >> 32) ^ w1[i] ^ key0;
      w2[i] = static_cast<uint32_t>(product0 >> 32) ^ w3[i] ^ key1;
      w1[i] = static_cast<uint32_t>(product1);
      w3[i] = static_cast<uint32_t>(product0);
    }
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
}

// Like FillUniform for many rows, kCalls calls at a time. REQUIRES: dim is a multiple of kWords.
void FillUniformRows(uint64_t seed, std::span<const int64_t> ids, std::span<float* const> rows,
                     size_t dim, float least, float width) {
  const size_t calls_per_row = dim / kWords;
  const size_t all = ids.size() * calls_per_row;
  Calls calls;                     // NOLINT: written before it is read
  std::array<float*, kCalls> out;  // NOLINT: written before it is read
  size_t row = 0;
  size_t call = 0;  // within the row
  for (size_t done = 0; done < all; done += kCalls) {
    const size_t count = std::min(kCalls, all - done);
    for (size_t i = 0; i < count; ++i) {
      const auto id = static_cast<uint64_t>(ids[row]);
      calls.words[0][i] = static_cast<uint32_t>(id);
      calls.words[1][i] = static_cast<uint32_t>(id >> 32);
      calls.words[2][i] = static_cast<uint32_t>(call);
      calls.words[3][i] = 0;
      out[i] = rows[row] + call * kWords;
      if (++call == calls_per_row) {
        call = 0;
        ++row;
      }
    }
    RunPhilox(seed, calls);
    for (size_t i = 0; i < count; ++i) {
      for (size_t word = 0; word < kWords; ++word) {
        out[i][word] = least + width * ToUnit(calls.words[word][i]);
      }
    }
  }
}

void FillNormal(uint64_t seed, uint64_t id, float mean, float stddev, std::span<float> row) {
  for (size_t at = 0; at < row.size(); at += kWords) {
    const auto words = Philox(seed, id, at / kWords);
    const auto front = ToNormal(words[0], words[1]);
    const auto back = ToNormal(words[2], words[3]);
    const std::array<float, kWords> values = {front[0], front[1], back[0], back[1]};
    for (size_t i = 0; i < std::min(kWords, row.size() - at); ++i) {
      row[at + i] = mean + stddev * values[i];
    }
  }
}

// Each place in a row has its own counters, so a value that is drawn again changes no other value.
float TruncatedAt(uint64_t seed, uint64_t id, size_t place) {
  float value = 0;
  for (uint32_t attempt = 0; attempt < kTries; ++attempt) {
    const auto words = Philox(seed, id, (uint64_t{attempt} << 32) | place);
    for (const float drawn : ToNormal(words[0], words[1])) {
      value = drawn;
      if (std::abs(value) <= 2.0F) return value;
    }
  }
  return std::clamp(value, -2.0F, 2.0F);
}

}  // namespace

Initializer Initializer::GlorotUniform(int64_t fan_in, int64_t fan_out) {
  const float limit = std::sqrt(6.0F / static_cast<float>(fan_in + fan_out));
  return Uniform(-limit, limit);
}

Initializer Initializer::GlorotNormal(int64_t fan_in, int64_t fan_out) {
  // The standard deviation of a standard normal that is truncated at two standard deviations.
  constexpr float kLeft = 0.87962566103423978F;
  return TruncatedNormal(0, std::sqrt(2.0F / static_cast<float>(fan_in + fan_out)) / kLeft);
}

void Initializer::Fill(uint64_t seed, int64_t id, std::span<float> row) const {
  const auto counter = static_cast<uint64_t>(id);
  switch (kind) {
    case Kind::kConstant:
      std::fill(row.begin(), row.end(), a);
      return;
    case Kind::kUniform:
      FillUniform(seed, counter, a, b - a, row);
      return;
    case Kind::kNormal:
      FillNormal(seed, counter, a, b, row);
      return;
    case Kind::kTruncatedNormal:
      for (size_t place = 0; place < row.size(); ++place) {
        row[place] = a + b * TruncatedAt(seed, counter, place);
      }
      return;
  }
}

void Initializer::FillAll(uint64_t seed, std::span<const int64_t> ids, std::span<float* const> rows,
                          size_t dim) const {
  if (kind == Kind::kUniform && dim % kWords == 0) {
    FillUniformRows(seed, ids, rows, dim, a, b - a);
    return;
  }
  for (size_t i = 0; i < ids.size(); ++i) Fill(seed, ids[i], {rows[i], dim});
}

uint64_t SeedOf(uint64_t job_seed, std::string_view table) {
  const auto words = Philox(job_seed, wire::HashOf(table), 0);
  return (uint64_t{words[1]} << 32) | words[0];
}

}  // namespace edl::ps
