// The table of one lane on one thread: pulls and pushes of batches of 26,624 ids (half of 2,048 x
// 26, because a server has two lanes) out of 4 M, dimension 16, Adagrad, without a network. The
// same is measured with std::unordered_map. Figures are rows per second of one lane.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <unordered_map>
#include <vector>

#include "ps/table.h"

namespace edl::ps {
namespace {

constexpr size_t kRows = 2'000'000;  // half of 4 M
constexpr size_t kBatch = 26'624;
constexpr size_t kDim = 16;
constexpr int kRounds = 9;
constexpr int kBatches = 60;

using Ids = std::vector<int64_t>;

std::vector<Ids> Batches() {
  std::mt19937_64 random(1);
  std::vector<Ids> batches(kBatches);
  std::vector<bool> taken(kRows);
  for (Ids& ids : batches) {
    while (ids.size() < kBatch) {
      const size_t drawn = random() % kRows;
      if (taken[drawn]) continue;
      taken[drawn] = true;
      ids.push_back(static_cast<int64_t>(drawn) * 7919);
    }
    for (const int64_t id : ids) taken[static_cast<size_t>(id / 7919)] = false;
  }
  return batches;
}

// The median over the rounds.
template <typename Work>
double RowsPerSecond(const std::vector<Ids>& batches, const Work& work) {
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (const Ids& ids : batches) work(ids);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    rates.push_back(static_cast<double>(batches.size() * kBatch) / took.count());
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

void Figure(const char* name, double value, const char* unit) {
  std::printf("figure %s %.4g %s\n", name, value, unit);
  std::fflush(stdout);
}

}  // namespace
}  // namespace edl::ps

int main() {
  using namespace edl::ps;  // NOLINT: one program, one namespace
  const std::vector<Ids> batches = Batches();
  const auto adagrad = std::move(*MakeOptimizer({.name = "Adagrad"}));
  const TableSpec spec{.name = "t",
                       .dim = kDim,
                       .initializer = Initializer::Uniform(-0.05F, 0.05F),
                       .optimizer = {.name = "Adagrad"},
                       .seed = SeedOf(1, "t")};
  std::vector<float> rows(kBatch * kDim);
  const std::vector<float> gradients(kBatch * kDim, 0.01F);

  Table table(spec);
  Ids all(kRows);
  for (size_t i = 0; i < kRows; ++i) all[i] = static_cast<int64_t>(i) * 7919;
  const auto begin = std::chrono::steady_clock::now();
  for (size_t at = 0; at < kRows; at += kBatch) {
    table.Pull(std::span(all).subspan(at, std::min(kBatch, kRows - at)), Table::Unknown::kMake,
               rows.data());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  Figure("table.create_rows_per_s", kRows / took.count(), "rows/s");
  Figure("table.pull_rows_per_s",
         RowsPerSecond(
             batches, [&](const Ids& ids) { table.Pull(ids, Table::Unknown::kMake, rows.data()); }),
         "rows/s");
  Figure("table.push_rows_per_s",
         RowsPerSecond(batches,
                       [&](const Ids& ids) {
                         table.Push(ids, gradients.data(), {.learning_rate = 0.1F}, 0);
                       }),
         "rows/s");
  Figure("table.bytes_per_row", static_cast<double>(table.bytes()) / kRows, "bytes");

  std::unordered_map<int64_t, std::vector<float>> map;
  for (const int64_t id : all) map.emplace(id, std::vector<float>(2 * kDim));
  Figure("table.unordered_map.pull_rows_per_s",
         RowsPerSecond(batches,
                       [&](const Ids& ids) {
                         float* out = rows.data();
                         for (const int64_t id : ids) {
                           out = std::copy_n(map.find(id)->second.data(), kDim, out);
                         }
                       }),
         "rows/s");
  Figure("table.unordered_map.push_rows_per_s",
         RowsPerSecond(batches,
                       [&](const Ids& ids) {
                         const float* gradient = gradients.data();
                         for (const int64_t id : ids) {
                           float* const block = map.find(id)->second.data();
                           adagrad->Apply({&block, 1}, kDim, gradient, {.learning_rate = 0.1F});
                           gradient += kDim;
                         }
                       }),
         "rows/s");
  return 0;
}
