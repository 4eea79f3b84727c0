#include "kube/reflector.h"

#include <exception>
#include <utility>

namespace edl::kube {

using Kind = WatchEvent::Kind;

Reflector::Reflector(Connection& connection, Scope scope, const Timing& timing, Listener listener,
                     const Options& options)
    : scope_(std::move(scope)),
      timing_(timing),
      listener_(std::move(listener)),
      options_(options),
      client_(connection, timing, {.tries = 1, .reduce = options.reduce}),
      backoff_(options.backoff, timing.clock, timing.chance) {}

void Reflector::Run(const std::stop_token& stop) {
  Next next = Next::kList;
  while (!stop.stop_requested()) {
    const bool later = next == Next::kWatchLater || next == Next::kListLater;
    if (later && !timing_.wait(backoff_.Next(), stop)) return;
    // Libraries throw, for example if no thread can be started. Other watches must continue.
    try {
      next = Step(next, stop);
    } catch (const std::exception& error) {
      ReportError(Internal("list or watch {}{}{}: {}", scope_.resource.plural,
                           scope_.ns.empty() ? "" : " in ", scope_.ns, error.what()));
      next = Next::kListLater;
    }
  }
}

Reflector::Next Reflector::Step(Next next, const std::stop_token& stop) {
  if (next == Next::kWatch || next == Next::kWatchLater) return Watch(stop);
  return List(stop) ? Next::kWatch : Next::kListLater;
}

void Reflector::ReportError(const Status& status) const {
  if (status.code() != Code::kCancelled && listener_.on_error) listener_.on_error(status);
}

bool Reflector::List(const std::stop_token& stop) {
  auto list = client_.List(scope_.resource, scope_.ns, scope_.selector, stop);
  if (!list.ok()) {
    ReportError(list.status());
    return false;
  }
  version_ = list->resource_version;
  listed_at_ = timing_.clock.Now();
  listener_.on_list(std::move(*list));
  return true;
}

Reflector::Next Reflector::Watch(const std::stop_token& stop) {
  const Time begun = timing_.clock.Now();
  const auto timeout = std::chrono::duration_cast<std::chrono::seconds>(
      options_.shortest_watch_timeout * (1 + timing_.chance()));
  auto watch = client_.Watch(scope_.resource, scope_.ns,
                             {.selector = scope_.selector,
                              .resource_version = version_,
                              .timeout = timeout,
                              .silence = options_.silence},
                             stop);
  if (!watch.ok()) return Next::kWatchLater;  // cancelled
  for (bool useful = false;; useful = true) {
    auto event = (*watch)->Next();
    const Duration lasted = timing_.clock.Now() - begun;
    if (!event.ok()) {
      ReportError(event.status());
      return AfterFailure(event.status(), lasted);
    }
    if (*event) {
      Deliver(std::move(**event));
    } else if (useful || lasted >= options_.short_watch) {
      return Next::kWatch;
    } else {
      ReportError(Unavailable("watch {} in {}: the server ended the watch immediately",
                              scope_.resource.plural, scope_.ns));
      return Next::kWatchLater;
    }
  }
}

Reflector::Next Reflector::AfterFailure(const Status& failure, Duration lasted) const {
  switch (failure.code()) {
    case Code::kUnavailable:
      // A connection that worked until now usually breaks for a reason that has already passed.
      return lasted >= options_.short_watch ? Next::kWatch : Next::kWatchLater;
    case Code::kCancelled:
    case Code::kResourceExhausted:
      return Next::kWatchLater;
    case Code::kOutOfRange:
      // The server answers, so the backoff of an earlier outage does not apply: list without delay,
      // except when the server has expired the version of a list within a moment.
      return timing_.clock.Now() - listed_at_ >= options_.short_watch ? Next::kList
                                                                      : Next::kListLater;
    default:
      return Next::kListLater;
  }
}

void Reflector::Deliver(WatchEvent event) {
  Object object(std::move(event.object));
  if (const std::string version = object.resource_version(); !version.empty()) version_ = version;
  if (event.kind == Kind::kBookmark || object.name().empty()) return;
  listener_.on_event(event.kind, std::move(object));
}

}  // namespace edl::kube
