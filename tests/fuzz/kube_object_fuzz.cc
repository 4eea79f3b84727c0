// The input is an object or an error of an API server. Objects stay the same when they are written
// and read again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "kube/api_status.h"
#include "kube/object.h"
#include "kube/pod.h"
#include "kube/text.h"

namespace {

void ReadObject(std::string_view text) {
  auto object = edl::kube::Object::Parse(text);
  if (!object.ok()) return;
  const auto again = edl::kube::Object::Parse(edl::Dump(object->fields()));
  CHECK(again.ok(), "cannot read again what was written: {}", again.status().message());
  CHECK(again->key() == object->key(), "written and read again, the object is {} instead of {}",
        again->key(), object->key());
  const edl::kube::PodState pod = edl::kube::PodStateOf(*object);
  CHECK(pod.deleting == object->deleting(), "the pod and its object differ");
  static_cast<void>(pod.ready() || !pod.disruption().empty() || !pod.unschedulable().empty());
  for (const edl::kube::OwnerReference& owner : object->owners()) object->AddOwner(owner);
  object->set_label("a", "b");
  object->set_annotation("a", "b");
  CHECK(object->label("a") == "b", "a label was not kept");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  ReadObject(text);
  CHECK(!edl::kube::StatusOf({.status = 409, .body = text}).ok(), "status 409 is not an error");
  static_cast<void>(edl::kube::StatusOfObject(text).ok());
  const auto wait = edl::kube::RetryAfter({.status = 429, .body = text, .retry_after = text});
  CHECK(!wait || wait->count() > 0, "a wait of {} s", wait->count());
  if (const auto time = edl::kube::ParseTime(text)) {
    const std::string written = edl::kube::FormatMicroTime(*time);
    CHECK(written.ends_with('Z'), "a time is written as '{}'", written);
  }
  return 0;
}
