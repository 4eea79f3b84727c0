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

// The answer of a numbered call, kept until the caller confirms that it has received it.
struct StoredAnswer {
  bool complete = false;  // false: the reports were processed, the request for shards still waits
  LeaseAnswer answer = LeaseAnswer::kNothing;
  std::vector<LeaseId> leases;
  std::vector<ReportVerdict> verdicts;
};

// The state of one incarnation: a process of a replica that joined at our API, or the calls of a
// replica at the compatibility API.
struct Session {
  Incarnation incarnation;
  ReplicaRef replica;
  bool compat_api = false;
  std::string process;
  std::map<uint64_t, StoredAnswer> answers;  // by call number
  uint64_t received = 0;
  bool ended = false;  // was answered Finished for some dataset

  // Not durable: each process of the master starts with the defaults.
  Time heard_at;                 // the last call
  Time reported_at;              // the last completed shard
  bool connected = false;        // its Watch stream is open
  bool stream_was_open = false;  // in this process of the master
  Time disconnected_at;
  std::set<DatasetId> told_finished;
  // Compatibility API: which answers a replica that exits now has got.
  bool from_ledger = false;       // opened by an earlier process of the master
  bool fetch_answered = false;    // at least one, by this process of the master
  std::optional<Time> fetch_cut;  // its last fetch ended without an answer
  bool out_of_order = false;      // its reports do not follow the order of its leases
};

// All open sessions. The ledger keeps them with their stored answers.
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
  // Null: there was no such session, or it has ended.
  Session* Find(Incarnation incarnation);
  const Session* Find(Incarnation incarnation) const;
  // The session of a replica at the compatibility API. Null: it has none.
  Session* FindCompat(ReplicaRef replica);
  // The sessions of a replica, at both APIs.
  std::vector<Incarnation> Of(ReplicaRef replica) const;
  void Close(Incarnation incarnation);

  void StoreAnswer(Session& session, uint64_t number, StoredAnswer answer);
  // The caller has received the answers of all calls up to this number: removes them.
  void Received(Session& session, uint64_t up_to);

  std::map<Incarnation, Session>& all() { return sessions_; }
  size_t size() const { return sessions_.size(); }
  uint64_t next_incarnation() const { return next_incarnation_; }
  // Makes the next Flush write the session.
  void MarkDirty(const Session& session) { dirty_.insert(session.incarnation); }
  // Writes the sessions that changed since the last call to the ledger.
  void Flush();

 private:
  Ledger& ledger_;  // outlives this
  std::map<Incarnation, Session> sessions_;
  std::map<ReplicaRef, Incarnation> compat_api_;
  std::map<ReplicaRef, std::set<Incarnation>> by_replica_;
  std::set<Incarnation> dirty_;
  uint64_t next_incarnation_ = 1;
};

// Writes the stored answers of a session as text for the ledger: docs/formats/ledger.md.
std::string EncodeAnswers(const Session& session);
// Reads that text into `session`. DataLoss: EncodeAnswers did not write it.
Status DecodeAnswers(const std::string& text, Session& session);

}  // namespace edl::master
