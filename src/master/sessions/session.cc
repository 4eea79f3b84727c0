#include "master/sessions/session.h"

#include <charconv>
#include <iterator>
#include <string_view>

#include "master/ledger/damaged_entry.h"

namespace edl::master {
namespace {

// Removes the number at the start of `text` and the separator after it.
bool TakeNumber(std::string_view& text, uint64_t& number, char& separator) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size()) return false;
  separator = *end;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return true;
}

}  // namespace

// All values are numbers, each followed by one separator character:
//   received; ended; then for each answer
//   number: complete: answer: count of leases, leases..., count of verdicts, verdicts...
std::string EncodeAnswers(const Session& session) {
  std::string text = fmt::format("{};{};", session.received, session.ended ? 1 : 0);
  auto out = std::back_inserter(text);
  for (const auto& [number, stored] : session.answers) {
    fmt::format_to(out, "{}:{}:{}:{},", number, stored.complete ? 1 : 0,
                   static_cast<int>(stored.answer), stored.leases.size());
    for (const LeaseId lease : stored.leases) fmt::format_to(out, "{},", lease.value());
    fmt::format_to(out, "{},", stored.verdicts.size());
    for (const ReportVerdict verdict : stored.verdicts) {
      fmt::format_to(out, "{},", static_cast<int>(verdict));
    }
  }
  return text;
}

Status DecodeAnswers(const std::string& text, Session& session) {
  std::string_view rest = text;
  char separator = 0;
  const auto bad = [&] {
    return DamagedEntry(fmt::format("answers of incarnation {}", session.incarnation),
                        "it cannot be parsed");
  };
  uint64_t ended = 0;
  if (!TakeNumber(rest, session.received, separator) || !TakeNumber(rest, ended, separator)) {
    return bad();
  }
  session.ended = ended != 0;
  while (!rest.empty()) {
    uint64_t number = 0;
    uint64_t complete = 0;
    uint64_t answer = 0;
    uint64_t count = 0;
    if (!TakeNumber(rest, number, separator) || !TakeNumber(rest, complete, separator) ||
        !TakeNumber(rest, answer, separator) || !TakeNumber(rest, count, separator) ||
        answer > static_cast<uint64_t>(LeaseAnswer::kRetry)) {
      return bad();
    }
    StoredAnswer stored{.complete = complete != 0, .answer = static_cast<LeaseAnswer>(answer)};
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t lease = 0;
      if (!TakeNumber(rest, lease, separator)) return bad();
      stored.leases.emplace_back(lease);
    }
    if (!TakeNumber(rest, count, separator)) return bad();
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t verdict = 0;
      if (!TakeNumber(rest, verdict, separator)) return bad();
      if (verdict > static_cast<uint64_t>(ReportVerdict::kReopen)) return bad();
      stored.verdicts.push_back(static_cast<ReportVerdict>(verdict));
    }
    session.answers[number] = std::move(stored);
  }
  return Ok();
}

Status Sessions::Load(uint64_t next_incarnation, Time now) {
  next_incarnation_ = next_incarnation;
  EDL_ASSIGN_OR_RETURN(const std::vector<SessionRow> rows, ledger_.Sessions());
  for (const SessionRow& row : rows) {
    Session session{.incarnation = row.incarnation,
                    .replica = row.replica,
                    .compat_api = row.compat_api,
                    .process = row.process};
    EDL_RETURN_IF_ERROR(DecodeAnswers(row.answers, session));
    session.heard_at = now;
    session.disconnected_at = now;
    session.from_ledger = true;
    session.reported_at = now;
    if (row.compat_api) compat_api_[row.replica] = row.incarnation;
    by_replica_[row.replica].insert(row.incarnation);
    sessions_[row.incarnation] = std::move(session);
  }
  return Ok();
}

Session& Sessions::Open(ReplicaRef replica, std::string process, Time now) {
  const Incarnation incarnation(next_incarnation_++);
  Session& session = sessions_[incarnation];
  session.incarnation = incarnation;
  session.replica = replica;
  session.process = std::move(process);
  session.heard_at = now;
  session.disconnected_at = now;
  session.reported_at = now;
  by_replica_[replica].insert(incarnation);
  dirty_.insert(incarnation);
  return session;
}

Session& Sessions::OpenCompat(ReplicaRef replica, Time now) {
  Session& session = Open(replica, "", now);
  session.compat_api = true;
  compat_api_[replica] = session.incarnation;
  return session;
}

Session* Sessions::Find(Incarnation incarnation) {
  auto found = sessions_.find(incarnation);
  return found == sessions_.end() ? nullptr : &found->second;
}

const Session* Sessions::Find(Incarnation incarnation) const {
  const auto found = sessions_.find(incarnation);
  return found == sessions_.end() ? nullptr : &found->second;
}

Session* Sessions::FindCompat(ReplicaRef replica) {
  auto found = compat_api_.find(replica);
  return found == compat_api_.end() ? nullptr : Find(found->second);
}

std::vector<Incarnation> Sessions::Of(ReplicaRef replica) const {
  const auto found = by_replica_.find(replica);
  if (found == by_replica_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

void Sessions::Close(Incarnation incarnation) {
  auto found = sessions_.find(incarnation);
  if (found == sessions_.end()) return;
  const ReplicaRef replica = found->second.replica;
  if (found->second.compat_api) compat_api_.erase(replica);
  const auto others = by_replica_.find(replica);
  others->second.erase(incarnation);
  if (others->second.empty()) by_replica_.erase(others);
  sessions_.erase(found);
  dirty_.erase(incarnation);
  ledger_.Delete(incarnation);
}

void Sessions::StoreAnswer(Session& session, uint64_t number, StoredAnswer answer) {
  session.answers[number] = std::move(answer);
  dirty_.insert(session.incarnation);
}

void Sessions::Received(Session& session, uint64_t up_to) {
  if (up_to <= session.received) return;
  session.received = up_to;
  session.answers.erase(session.answers.begin(), session.answers.upper_bound(up_to));
  dirty_.insert(session.incarnation);
}

void Sessions::Flush() {
  for (const Incarnation incarnation : dirty_) {
    const Session& session = sessions_.at(incarnation);
    ledger_.Put(SessionRow{incarnation, session.replica, session.compat_api, session.process,
                           EncodeAnswers(session)});
  }
  dirty_.clear();
}

}  // namespace edl::master
