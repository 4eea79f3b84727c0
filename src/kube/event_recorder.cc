#include "kube/event_recorder.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "kube/text.h"

namespace edl::kube {
namespace {

using nlohmann::json;

constexpr size_t kMaxMessageBytes = 1024;
constexpr size_t kMaxRemembered = 4096;

// Truncates the text to the length that the API allows, at a character boundary.
std::string Shortened(const std::string& text) {
  if (text.size() <= kMaxMessageBytes) return text;
  size_t end = kMaxMessageBytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

json ReferenceTo(const Object& object) {
  json out = {{"kind", object.kind()}, {"name", object.name()}, {"uid", object.uid()}};
  const std::string api_version = TextIn(object.fields(), "apiVersion");
  if (!api_version.empty()) out["apiVersion"] = api_version;
  if (!object.ns().empty()) out["namespace"] = object.ns();
  if (!object.resource_version().empty()) out["resourceVersion"] = object.resource_version();
  return out;
}

}  // namespace

EventRecorder::EventRecorder(Connection& connection, const Timing& timing, Options options)
    : options_(std::move(options)),
      timing_(timing),
      client_(connection, timing, {.tries = 3, .retry_timeout = std::chrono::seconds(10)}) {}

bool EventRecorder::IsRoutine(const std::string& reason) const {
  return std::any_of(options_.routine.begin(), options_.routine.end(),
                     [&](const std::string& prefix) { return reason.starts_with(prefix); });
}

bool EventRecorder::TooMany(const Key& key) {
  if (limits_.size() > kMaxRemembered) limits_.clear();
  auto& limit = limits_[{key.uid, IsRoutine(key.reason)}];
  if (limit == nullptr) {
    limit = std::make_unique<RateLimit>(1.0 / static_cast<double>(options_.refill.count()),
                                        options_.burst, timing_.clock);
  }
  return !limit->TryTake();
}

bool EventRecorder::Record(const Object& about, EventType type, const std::string& reason,
                           const std::string& message) {
  const WallTime now = timing_.clock.WallNow();
  Key key{about.uid(), type, reason, Shortened(message)};
  const MutexLock lock(mutex_);
  if (TooMany(key)) return false;
  const auto same = std::find_if(queue_.begin(), queue_.end(),
                                 [&](const Queued& queued) { return queued.key == key; });
  if (same != queue_.end()) {
    ++same->count;
    same->last = now;
  } else {
    if (queue_.size() >= options_.max_queued) return false;
    queue_.push_back({std::move(key), ReferenceTo(about), 1, now, now});
  }
  changed_.NotifyAll();
  return true;
}

void EventRecorder::Run(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
  });
  while (!stop.stop_requested()) {
    {
      const MutexLock lock(mutex_);
      while (queue_.empty() && !stop.stop_requested()) changed_.Wait(mutex_);
    }
    Flush(stop);
  }
}

void EventRecorder::Flush(const std::stop_token& stop) {
  std::deque<Queued> all;
  const MutexLock sending(sending_);
  {
    const MutexLock lock(mutex_);
    std::swap(all, queue_);
  }
  for (const Queued& queued : all) {
    if (stop.stop_requested()) return;
    Send(queued, stop);
  }
}

void EventRecorder::Send(const Queued& queued, const std::stop_token& stop) {
  if (sent_.size() > kMaxRemembered) sent_.clear();
  const auto known = sent_.find(queued.key);
  if (known != sent_.end()) {
    if (Repeat(known->second, queued, stop).ok()) return;
    sent_.erase(known);  // the server deletes events after an hour
  }
  auto sent = Create(queued, stop);
  if (sent.ok()) {
    sent_.emplace(queued.key, std::move(*sent));
  } else if (sent.status().code() != Code::kCancelled) {
    LOG_WARNING("cannot record the event {} ({}): {}", queued.key.reason, queued.key.message,
                sent.status().message());
  }
}

Status EventRecorder::Repeat(Sent& sent, const Queued& queued, const std::stop_token& stop) {
  const json patch = {{"count", sent.count + queued.count},
                      {"lastTimestamp", FormatTime(queued.last)}};
  EDL_RETURN_IF_ERROR(client_.Patch(kEvents, sent.event, patch, {}, stop).status());
  sent.count += queued.count;
  return Ok();
}

Result<EventRecorder::Sent> EventRecorder::Create(const Queued& queued,
                                                  const std::stop_token& stop) {
  const std::string ns = TextIn(queued.about, "namespace");
  const ObjectKey key{ns.empty() ? "default" : ns,
                      fmt::format("{}.{:x}.{:x}", TextIn(queued.about, "name"),
                                  timing_.clock.WallNow().time_since_epoch().count(), ++number_)};
  Object event(kEvents, key);
  event.fields().update({{"involvedObject", queued.about},
                         {"type", queued.key.type == EventType::kWarning ? "Warning" : "Normal"},
                         {"reason", queued.key.reason},
                         {"message", queued.key.message},
                         {"source", {{"component", options_.component}}},
                         {"reportingComponent", options_.component},
                         {"reportingInstance", options_.instance},
                         {"firstTimestamp", FormatTime(queued.first)},
                         {"lastTimestamp", FormatTime(queued.last)},
                         {"count", queued.count}});
  EDL_RETURN_IF_ERROR(client_.Create(kEvents, event, stop).status());
  return Sent{key, queued.count};
}

}  // namespace edl::kube
