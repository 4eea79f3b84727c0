#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "master/ledger/ledger.h"
#include "master/types.h"

namespace edl::master {

// What a numbered call was answered, kept until the caller says that it arrived.
struct StoredAnswer {
  bool complete = false;  // false: the reports were taken, the lease part is still open
  LeaseAnswer answer = LeaseAnswer::kNothing;
  std::vector<LeaseId> leases;
  std::vector<ReportVerdict> verdicts;
};

// One incarnation: a process of a replica that joined at our API, or that called at the old one.
struct Session {
  Incarnation incarnation;
  ReplicaRef replica;
  bool compat_api = false;
  std::string process;
  std::map<uint64_t, StoredAnswer> answers;  // by call number
  uint64_t received = 0;
  bool ended = false;  // was told Finished of some dataset

  // Not durable: found out anew by each master life.
  Time heard_at;
  Time reported_at;              // it last completed a shard
  bool connected = false;        // its Watch stream is open
  bool stream_was_open = false;  // in this master life
  Time disconnected_at;
  std::set<DatasetId> told_finished;
  // Compatibility API: what a replica that exits now was told.
  bool from_ledger = false;       // opened in an earlier master life
  bool fetch_answered = false;    // at least one, in this master life
  std::optional<Time> fetch_cut;  // its last fetch ended without an answer
  bool out_of_order = false;      // reports do not follow the order of leases
};

// The incarnations there are. The ledger keeps them, with their stored answers.
//
// Confined: call it on the master's loop.
class Sessions {
 public:
  explicit Sessions(Ledger& ledger) : ledger_(ledger) {}

  Status Load(uint64_t next_incarnation, Time now);

  // Opens a session for a process that joins at our API. `process` is shown to users.
  Session& Open(ReplicaRef replica, std::string process, Time now);
  // Opens the session of a replica that calls at the compatibility API.
  Session& OpenCompat(ReplicaRef replica, Time now);
  // Null: never there, or given up.
  Session* Find(Incarnation incarnation);
  const Session* Find(Incarnation incarnation) const;
  // The compatibility API's session of a replica; null if it has none.
  Session* FindCompat(ReplicaRef replica);
  std::vector<Incarnation> Of(ReplicaRef replica) const;
  void Close(Incarnation incarnation);

  void StoreAnswer(Session& session, uint64_t number, StoredAnswer answer);
  // Forgets answers that arrived.
  void Received(Session& session, uint64_t up_to);

  std::map<Incarnation, Session>& all() { return sessions_; }
  uint64_t next_incarnation() const { return next_incarnation_; }
  // To be written at the next Flush.
  void MarkDirty(const Session& session) { dirty_.insert(session.incarnation); }
  // Writes what changed since the last call.
  void Flush();

 private:
  Ledger& ledger_;  // outlives this
  std::map<Incarnation, Session> sessions_;
  std::map<ReplicaRef, Incarnation> compat_api_;
  std::map<ReplicaRef, std::set<Incarnation>> by_replica_;
  std::set<Incarnation> dirty_;
  uint64_t next_incarnation_ = 1;
};

// The form in which a session's answers lie in the ledger.
std::string EncodeAnswers(const Session& session);
// DataLoss: not written by EncodeAnswers.
Status DecodeAnswers(const std::string& text, Session& session);

}  // namespace edl::master
