#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "kube/resource.h"

namespace edl::kube {

// Selects objects by labels ("app=web,tier!=cache,!canary,zone in (a, b)") and by fields
// ("status.phase=Running"). An empty selector selects everything.
struct Selector {
  std::string labels;
  std::string fields;
};

struct WatchOptions {
  Selector selector;
  std::string resource_version;  // of the list that the watch continues
  // The server ends the watch after this time.
  std::chrono::seconds timeout{300};
  // A watch that receives nothing for this long is considered broken. Servers send a bookmark about
  // every minute.
  std::chrono::milliseconds silence{90'000};
};

// The format of a patch.
enum class PatchType {
  kMerge,      // RFC 7386: lists are replaced, null removes a field
  kStrategic,  // lists are merged by key; only for built-in kinds
  kJson,       // RFC 6902: a list of operations
  kApply,      // server-side apply; creates the object if it does not exist
};

struct PatchOptions {
  PatchType type = PatchType::kMerge;
  std::string subresource;    // "status"; empty: the object itself
  std::string field_manager;  // required for kApply
  bool force = false;         // kApply: take over fields that other managers own
};

// What happens to the objects that a deleted object owns.
enum class Propagation { kBackground, kForeground, kOrphan };

struct DeleteOptions {
  std::optional<Propagation> propagation;     // nullopt: the default of the kind
  std::optional<std::chrono::seconds> grace;  // nullopt: the object's own; 0: kill immediately
  // Preconditions: when set and different from the stored object, the call fails with Aborted.
  std::string uid;
  std::string resource_version;
};

struct LogOptions {
  std::string container;  // may be empty if the pod has only one container
  bool previous = false;  // of the container before its last restart
  std::optional<int64_t> tail_lines;
  std::optional<std::chrono::seconds> since;
  std::string since_time;  // RFC 3339; the server truncates it to whole seconds
  std::optional<int64_t> limit_bytes;
  bool timestamps = false;
};

// An action on a resource, for an access review.
struct Access {
  std::string verb;  // "create", "get", "list", "watch", ...
  Resource resource;
  std::string subresource;
  std::string ns;    // empty: all namespaces
  std::string name;  // empty: any
};

struct AccessAnswer {
  bool allowed = false;
  std::string reason;  // from the server; may be empty
};

}  // namespace edl::kube
