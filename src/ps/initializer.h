#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl::ps {

// The initial values of rows. Has the distributions of the initializers of Keras 2.15 with the same
// names. Immutable.
struct Initializer {
  enum class Kind { kConstant, kUniform, kNormal, kTruncatedNormal };

  Kind kind = Kind::kConstant;
  float a = 0;  // constant: the value; uniform: the lower bound; normal: the mean
  float b = 0;  // uniform: the upper bound; normal: the standard deviation

  static Initializer Constant(float value) { return {Kind::kConstant, value, 0}; }
  static Initializer Uniform(float least, float most) { return {Kind::kUniform, least, most}; }
  static Initializer Normal(float mean, float stddev) { return {Kind::kNormal, mean, stddev}; }
  // Normal, except that values beyond two standard deviations are drawn again.
  static Initializer TruncatedNormal(float mean, float stddev) {
    return {Kind::kTruncatedNormal, mean, stddev};
  }
  // For a tensor with these two dimensions. An embedding table has no fixed number of rows, so the
  // user has to choose fan_in.
  static Initializer GlorotUniform(int64_t fan_in, int64_t fan_out);
  static Initializer GlorotNormal(int64_t fan_in, int64_t fan_out);

  bool operator==(const Initializer&) const = default;

  // Writes the initial values of row `id`. They depend only on the initializer, `seed` and `id`.
  void Fill(uint64_t seed, int64_t id, std::span<float> row) const;
  // The same for many rows, with `dim` values each.
  void FillAll(uint64_t seed, std::span<const int64_t> ids, std::span<float* const> rows,
               size_t dim) const;
};

// The seed of the rows of a table, from the seed of the job and the name of the table.
uint64_t SeedOf(uint64_t job_seed, std::string_view table);

}  // namespace edl::ps
