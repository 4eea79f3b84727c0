// The body of a watch: the same events, or the same refusal, however its bytes are split.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "kube/watch_frames.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto whole = edl::kube::WatchFrames().Feed(text);
  edl::kube::WatchFrames frames;
  size_t events = 0;
  bool ok = true;
  for (size_t at = 0; at < text.size() && ok; ++at) {
    const auto some = frames.Feed(text.substr(at, 1));
    ok = some.ok();
    if (ok) events += some->size();
  }
  CHECK(ok == whole.ok(), "split by bytes it is {}", ok ? "taken" : "refused");
  CHECK(!ok || events == whole->size(), "{} events in one piece, {} by bytes", whole->size(),
        events);
  return 0;
}
