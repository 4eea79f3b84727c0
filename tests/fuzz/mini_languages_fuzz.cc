// The input is a value of a flag with its own syntax: resources, volumes, environment, critical
// workers. It is accepted, or rejected with a message. The form that hides values hides all of
// them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/quantity.h"
#include "job/envs.h"
#include "job/job_spec.h"
#include "job/resources.h"
#include "job/volume.h"

namespace {

template <typename T>
void CheckAnswer(const edl::Result<T>& answer) {
  CHECK(answer.ok() || !answer.status().message().empty(), "an error without a message");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckAnswer(edl::job::ParseResources(text));
  CheckAnswer(edl::ParseByteCount(text));
  CheckAnswer(edl::job::ParseCriticalWorkers(text));

  const auto volumes = edl::job::ParseVolumes(text);
  CheckAnswer(volumes);
  if (volumes.ok()) {
    for (const edl::job::Volume& volume : *volumes) {
      CHECK(!volume.mount_path.empty(), "a volume without a mount path from '{}'", text);
    }
  }

  const auto envs = edl::job::ParseEnvs(text);
  CheckAnswer(envs);
  const std::string shown = edl::job::RedactEnvs(text);
  // JSON allows names that the other form cannot express.
  if (envs.ok() && text.find('{') == std::string_view::npos) {
    const auto hidden = edl::job::ParseEnvs(shown);
    CHECK(hidden.ok() && hidden->size() == envs->size(), "'{}' hides as '{}'", text, shown);
    for (const auto& [name, value] : *hidden) {
      CHECK(value == "***", "{} is shown as '{}'", name, value);
    }
  }
  return 0;
}
