#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "reconciler/condition.h"
#include "reconciler/replica_type.h"
#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace edl::reconciler {

// The number of replicas of a role in each state. Pending replicas are counted nowhere.
struct ReplicaCounts {
  int64_t active = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;

  bool operator==(const ReplicaCounts&) const = default;
};

// The status of a TFJob: the fields of upstream's API, and those of this operator below
// `status.elasticdl`. The latter are decisions that must survive a restart of the operator.
//
// A value.
struct JobStatus {
  Conditions conditions;
  std::map<ReplicaType, ReplicaCounts> replicas;
  std::optional<WallTime> start_time;
  std::optional<WallTime> completion_time;

  // How often replicas failed and were replaced or restarted, for the backoff limit. Disruptions,
  // such as preemptions, do not count.
  int64_t retries = 0;
  // The uids of failed pods that are counted in `retries` and not deleted yet.
  std::set<std::string> replacing;
  // The indices of replicas that have succeeded. They are not run again if their pods are deleted.
  std::map<ReplicaType, std::set<int>> completed;
  std::string progress;  // "40 %"; empty: unknown

  bool IsCompleted(ReplicaType type, int index) const;
  int64_t NumCompleted(ReplicaType type) const;

  bool operator==(const JobStatus&) const = default;
};

// Reads a status. Fields with an unexpected type read as empty.
JobStatus ParseStatus(const nlohmann::json& status);

// Prints a status. Fields of `stored` that this operator does not know are kept.
nlohmann::json StatusJson(const JobStatus& status, const nlohmann::json& stored);

// Whether two statuses differ only in counts and progress, so that writing the newer one may wait a
// moment for further changes.
bool DifferOnlyInCounts(const JobStatus& a, const JobStatus& b);

// Indices as text: "0-2,5".
std::string FormatIndices(const std::set<int>& indices);
// Returns the indices before the first mistake, without those from 100,000 on. They must be
// ascending, as FormatIndices prints them.
std::set<int> ParseIndices(const std::string& text);

}  // namespace edl::reconciler
