// The input is pip's configuration, the output of an image builder, and an image name. A
// configuration that was written by us is read and written as the same text.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "image/build_log.h"
#include "image/image_name.h"
#include "image/pip_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  const std::string once = edl::image::WritePipConfig(edl::image::ReadPipConfig(text), "");
  const std::string twice = edl::image::WritePipConfig(edl::image::ReadPipConfig(once), "");
  CHECK(once == twice, "pip's configuration changes when it is read and written again:\n{}{}", once,
        twice);

  edl::image::BuildLog log;
  log.Append(text);
  log.Append("\n");
  CHECK(log.step().find('\n') == std::string::npos, "a step of two lines: {}", log.step());

  const auto name = edl::image::ParseImageName(text);
  if (name.ok()) {
    const auto again = edl::image::ParseImageName(name->Full());
    CHECK(again.ok() && again->Full() == name->Full(), "{} changes when read again", name->Full());
  }
  return 0;
}
