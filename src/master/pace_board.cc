#include "master/pace_board.h"

#include <algorithm>
#include <utility>

namespace edl::master {
namespace {

// More than anybody trains: sums of a few cannot overflow.
constexpr uint64_t kMost = uint64_t{1} << 40;

}  // namespace

int64_t PaceBoard::Slowest() const {
  if (paces_.empty()) return 0;
  return std::ranges::min_element(paces_, {},
                                  [](const auto& entry) { return entry.second.batches; })
      ->second.batches;
}

void PaceBoard::Await(Incarnation session, uint64_t batches, uint64_t ahead, Time until,
                      Reply reply) {
  Answer(false, [&](const Waiting& waiting) { return waiting.session == session; });
  const auto own = static_cast<int64_t>(std::min(batches, kMost));
  const int64_t slowest = Slowest();
  auto& [begin, now] = paces_.try_emplace(session, Pace{.begin = slowest - own}).first->second;
  now = begin + own;
  waiting_.push_back(
      {session, now - static_cast<int64_t>(std::min(ahead, kMost)), until, std::move(reply)});
  Settle();
}

void PaceBoard::Rest(Incarnation session) {
  Answer(false, [&](const Waiting& waiting) { return waiting.session == session; });
  if (paces_.erase(session) > 0) Settle();
}

void PaceBoard::Settle() {
  const int64_t slowest = Slowest();
  Answer(true, [&](const Waiting& waiting) { return waiting.at_least <= slowest; });
}

void PaceBoard::Tick(Time now) {
  Answer(false, [&](const Waiting& waiting) { return waiting.until <= now; });
}

void PaceBoard::Answer(bool ready, const std::function<bool(const Waiting&)>& is_over) {
  std::list<Waiting> over;
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    const auto here = waiting++;
    if (is_over(*here)) over.splice(over.end(), waiting_, here);
  }
  for (const Waiting& waiting : over) waiting.reply(ready);
}

}  // namespace edl::master
