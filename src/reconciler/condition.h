#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace edl::reconciler {

inline constexpr std::string_view kCreated = "Created";
inline constexpr std::string_view kRunning = "Running";
inline constexpr std::string_view kRestarting = "Restarting";
inline constexpr std::string_view kSucceeded = "Succeeded";
inline constexpr std::string_view kFailed = "Failed";
inline constexpr std::string_view kSuspended = "Suspended";

// A condition of a TFJob. The last one of a job is what `kubectl get` shows.
struct Condition {
  std::string type;
  bool is_true = true;
  std::string reason;
  std::string message;
  WallTime updated;
  WallTime changed;  // when `is_true` changed

  bool operator==(const Condition&) const = default;
};

// The conditions of a job, in the order in which they changed. It follows the rules of the upstream
// operator, because dashboards and the Python SDK read the last condition:
//   - after Failed nothing changes any more;
//   - a condition with the same type, status and reason changes nothing;
//   - one with a new reason replaces the old one in its place;
//   - one with a new status moves to the end;
//   - Running and Restarting replace each other;
//   - Succeeded and Failed make Running false in its place.
//
// A value.
class Conditions {
 public:
  // Sets a condition. Returns whether that changed anything.
  bool Set(std::string_view type, bool is_true, std::string_view reason, std::string message,
           WallTime now);
  // Puts the condition Created before all others if it is missing. Returns whether it was.
  bool EnsureCreated(std::string reason, std::string message, WallTime now);
  // Adds text to the message of a condition, if there is one of this type.
  void AppendToMessage(std::string_view type, const std::string& text);
  // Appends a condition as it was stored.
  void Append(Condition condition) { all_.push_back(std::move(condition)); }

  bool IsTrue(std::string_view type) const;
  // Returns null if there is none. The pointer is valid until the next change.
  const Condition* Find(std::string_view type) const;
  bool finished() const { return IsTrue(kSucceeded) || IsTrue(kFailed); }
  const std::vector<Condition>& all() const { return all_; }

  bool operator==(const Conditions&) const = default;

 private:
  std::vector<Condition> all_;
};

}  // namespace edl::reconciler
