// The input is a kubeconfig. It is accepted, or rejected with a message that names the file.
// Merging it with itself changes nothing.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "kube/kubeconfig.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto parsed = edl::kube::ParseKubeconfig(text, "/home/me/.kube/config");
  if (!parsed.ok()) {
    CHECK(parsed.status().message().find("/home/me/.kube/config") != std::string_view::npos,
          "an error that does not name the file: {}", parsed.status().message());
    return 0;
  }
  const size_t clusters = parsed->clusters.size();
  const auto same = *parsed;
  parsed->Merge(same);
  CHECK(parsed->clusters.size() == clusters, "merging a kubeconfig with itself added clusters");
  return 0;
}
