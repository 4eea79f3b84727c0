#include "ps/initializer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "ps/random.h"

namespace edl::ps {
namespace {

constexpr size_t kWords = 4;  // that one call of Philox gives

// How often a value beyond the limits is drawn again. One in 22 is, so 2^-70 are clamped at last.
constexpr uint32_t kTries = 16;

// Two of them from two words (Box and Muller, 1958).
std::array<float, 2> ToNormal(uint32_t first, uint32_t second) {
  // In (0, 1]: the logarithm of 0 is none.
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

// A place in the row has counters of its own, so that what is drawn again moves no other.
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
  // Cutting a normal off at two standard deviations leaves it this much narrower.
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

uint64_t SeedOf(uint64_t job_seed, std::string_view table) {
  // FNV-1a: a seed that is the same on every machine, where std::hash need not be.
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : table) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  }
  const auto words = Philox(job_seed, hash, 0);
  return (uint64_t{words[1]} << 32) | words[0];
}

}  // namespace edl::ps
