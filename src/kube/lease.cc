#include "kube/lease.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "base/retry.h"
#include "kube/text.h"

namespace edl::kube {
namespace {

using nlohmann::json;

std::string HolderOf(const Object& lease) {
  return TextIn(FieldAt(lease.fields(), {"spec"}), "holderIdentity");
}

// Whether the same call may succeed later. Includes responses that were cut off.
bool MaySucceedLater(const Status& status) {
  return IsTransientOrDenied(status) || IsConnectionLoss(status);
}

json& SpecOf(Object& lease) {
  json& spec = lease.fields()["spec"];
  if (!spec.is_object()) spec = json::object();
  return spec;
}

ClientOptions OneAttemptWithin(std::chrono::milliseconds timeout) {
  return {.timeout = timeout, .tries = 1};
}

}  // namespace

LeaseHolder::LeaseHolder(Connection& connection, const Timing& timing, LeaseOptions options)
    : options_(std::move(options)),
      timing_(timing),
      client_(connection, timing, OneAttemptWithin(options_.renew_deadline / 2)) {
  CHECK(options_.duration > options_.renew_deadline && options_.renew_deadline > options_.retry,
        "lease {}: requires duration {} s > renew_deadline {} s > retry {} s", options_.key,
        options_.duration.count(), options_.renew_deadline.count(), options_.retry.count());
}

bool LeaseHolder::held() const {
  const MutexLock lock(mutex_);
  return timing_.clock.Now() < held_until_;
}

void LeaseHolder::SetHeldUntil(Time time) {
  const MutexLock lock(mutex_);
  held_until_ = time;
}

void LeaseHolder::Observe(const Object& lease) {
  if (lease.resource_version() == observed_version_) return;
  observed_version_ = lease.resource_version();
  observed_at_ = timing_.clock.Now();
}

bool LeaseHolder::Expired(const Object& lease) const {
  const int64_t given = NumberIn(FieldAt(lease.fields(), {"spec"}), "leaseDurationSeconds");
  constexpr int64_t kLongest = 3600;  // an upper limit for the value in the object
  const std::chrono::seconds duration(given > 0 ? std::min(given, kLongest)
                                                : options_.duration.count());
  return timing_.clock.Now() - observed_at_ >= duration;
}

Result<LeaseHolder::Outcome> LeaseHolder::Try(const std::stop_token& stop) {
  auto lease = client_.Get(kLeases, options_.key, stop);
  if (lease.status().code() == Code::kNotFound) return Create(stop);
  if (!lease.ok()) return lease.status();
  Observe(*lease);
  const std::string holder = HolderOf(*lease);
  if (!holder.empty() && holder != options_.identity && !Expired(*lease)) {
    return Outcome{.holder = holder};
  }
  return Take(std::move(*lease), stop);
}

Result<LeaseHolder::Outcome> LeaseHolder::Create(const std::stop_token& stop) {
  Object lease(kLeases, options_.key);
  const std::string now = FormatMicroTime(timing_.clock.WallNow());
  lease.fields()["spec"] = {{"holderIdentity", options_.identity},
                            {"leaseDurationSeconds", options_.duration.count()},
                            {"acquireTime", now},
                            {"renewTime", now},
                            {"leaseTransitions", 0}};
  const Time sent = timing_.clock.Now();
  const auto created = client_.Create(kLeases, lease, stop);
  if (created.status().code() == Code::kAlreadyExists) return Outcome{};
  if (!created.ok()) return created.status();
  Observe(*created);
  SetHeldUntil(sent + options_.renew_deadline);
  return Outcome{.ours = true, .holder = {}, .transitions = 0};
}

Result<LeaseHolder::Outcome> LeaseHolder::Take(Object lease, const std::stop_token& stop) {
  json& spec = SpecOf(lease);
  const std::string now = FormatMicroTime(timing_.clock.WallNow());
  if (HolderOf(lease) != options_.identity) {
    spec["leaseTransitions"] = NumberIn(spec, "leaseTransitions") + 1;
    spec["acquireTime"] = now;
  }
  spec["holderIdentity"] = options_.identity;
  spec["leaseDurationSeconds"] = options_.duration.count();
  spec["renewTime"] = now;
  // Other processes count from when they see this write, which is later.
  const Time sent = timing_.clock.Now();
  const auto updated = client_.Update(kLeases, lease, stop);
  if (updated.status().code() == Code::kAborted) return Outcome{};
  if (!updated.ok()) return updated.status();
  Observe(*updated);
  SetHeldUntil(sent + options_.renew_deadline);
  return Outcome{.ours = true, .holder = {}, .transitions = NumberIn(spec, "leaseTransitions")};
}

Status LeaseHolder::Acquire(const std::stop_token& stop, const OnWaiting& on_waiting,
                            const OnError& on_error) {
  std::string waiting_for;
  Status last = Ok();
  while (true) {
    const auto outcome = Try(stop);
    if (!outcome.ok() && !MaySucceedLater(outcome.status())) return outcome.status();
    if (outcome.ok() && outcome->ours) {
      transitions_ = outcome->transitions;
      return Ok();
    }
    if (!outcome.ok() && outcome.status() != last && on_error) on_error(outcome.status());
    last = outcome.status();
    if (outcome.ok() && !outcome->holder.empty() && outcome->holder != waiting_for) {
      waiting_for = outcome->holder;
      if (on_waiting) on_waiting(waiting_for);
    }
    if (!timing_.wait(options_.retry, stop)) {
      return Cancelled("lease {}: acquiring it was cancelled", options_.key);
    }
  }
}

Status LeaseHolder::Keep(const std::stop_token& stop, const OnError& on_error) {
  Status last = Ok();
  while (timing_.wait(options_.retry, stop)) {
    const auto outcome = Try(stop);
    if (outcome.ok() && !outcome->holder.empty()) {
      SetHeldUntil(Time());
      return Aborted("lease {}: it is now held by '{}'", options_.key, outcome->holder);
    }
    if (outcome.ok() && outcome->ours && outcome->transitions != transitions_) {
      SetHeldUntil(Time());
      return Aborted("lease {}: another process held it in the meantime", options_.key);
    }
    if (!outcome.ok() && outcome.status() != last && on_error) on_error(outcome.status());
    last = outcome.status();
  }
  return Ok();
}

Status LeaseHolder::Release() {
  if (!held()) return Ok();
  SetHeldUntil(Time());
  auto lease = client_.Get(kLeases, options_.key);
  if (!lease.ok()) return lease.status();
  if (HolderOf(*lease) != options_.identity) return Ok();
  SpecOf(*lease)["holderIdentity"] = "";
  SpecOf(*lease)["leaseDurationSeconds"] = 1;
  return client_.Update(kLeases, *lease).status();
}

}  // namespace edl::kube
