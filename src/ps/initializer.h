#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl::ps {

// What a row is made of. Equal in distribution to the initializers of Keras 2.15 by the same name.
struct Initializer {
  enum class Kind { kConstant, kUniform, kNormal, kTruncatedNormal };

  Kind kind = Kind::kConstant;
  float a = 0;  // constant: the value; uniform: the least; normal: the mean
  float b = 0;  // uniform: the most; normal: the standard deviation

  static Initializer Constant(float value) { return {Kind::kConstant, value, 0}; }
  static Initializer Uniform(float least, float most) { return {Kind::kUniform, least, most}; }
  static Initializer Normal(float mean, float stddev) { return {Kind::kNormal, mean, stddev}; }
  // Normal, but for values beyond two standard deviations, which are drawn again.
  static Initializer TruncatedNormal(float mean, float stddev) {
    return {Kind::kTruncatedNormal, mean, stddev};
  }
  // For a tensor of these two sizes. A table without end has no first one: say what it stands for.
  static Initializer GlorotUniform(int64_t fan_in, int64_t fan_out);
  static Initializer GlorotNormal(int64_t fan_in, int64_t fan_out);

  bool operator==(const Initializer&) const = default;

  // Writes the row `id` of the table whose seed is `seed`: a function of these three alone.
  void Fill(uint64_t seed, int64_t id, std::span<float> row) const;
  // The same for many rows of `dim` values.
  void FillAll(uint64_t seed, std::span<const int64_t> ids, std::span<float* const> rows,
               size_t dim) const;
};

// The seed of a table's rows, from the job's and the table's name.
uint64_t SeedOf(uint64_t job_seed, std::string_view table);

}  // namespace edl::ps
