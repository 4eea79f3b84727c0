#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "kube/resource.h"

namespace edl::kube {

// What to ask for: "app=web,tier!=cache,!canary,zone in (a, b)", and "status.phase=Running".
struct Selector {
  std::string labels;
  std::string fields;
};

struct WatchOptions {
  Selector selector;
  std::string resource_version;  // of the list that this goes on from
  // The server ends the watch after so long.
  std::chrono::seconds timeout{300};
  // A watch that is silent for so long is taken for dead. Servers send a bookmark about every
  // minute.
  std::chrono::milliseconds silence{90'000};
};

// How a patch says what changes.
enum class PatchType {
  kMerge,      // fields; lists are replaced; null removes
  kStrategic,  // lists are merged by their keys; only for kinds that Kubernetes itself brings
  kJson,       // a list of operations
  kApply,      // all that `field_manager` wants of the object, which is made if it is missing
};

struct PatchOptions {
  PatchType type = PatchType::kMerge;
  std::string subresource;    // "status"; empty: the object
  std::string field_manager;  // kApply needs one
  bool force = false;         // kApply: take fields from other managers
};

// When what the object owns goes.
enum class Propagation { kBackground, kForeground, kOrphan };

struct DeleteOptions {
  std::optional<Propagation> propagation;     // none: as the kind has it
  std::optional<std::chrono::seconds> grace;  // none: as the object has it; 0: at once, unasked
  // Only this one, not another of the same name: Aborted where they differ. Empty: any.
  std::string uid;
  std::string resource_version;
};

struct LogOptions {
  std::string container;  // empty: the only one
  bool previous = false;  // of the run before the last restart
  std::optional<int64_t> tail_lines;
  std::optional<std::chrono::seconds> since;
  std::string since_time;  // RFC 3339, as the API writes it; cut to whole seconds by the server
  std::optional<int64_t> limit_bytes;
  bool timestamps = false;
};

// What somebody may want to do.
struct Access {
  std::string verb;  // "create", "get", "list", "watch", ...
  Resource resource;
  std::string subresource;
  std::string ns;    // empty: in all of them
  std::string name;  // empty: any
};

struct AccessAnswer {
  bool allowed = false;
  std::string reason;  // may be empty
};

}  // namespace edl::kube
