// The input is a job file. It is accepted, or rejected with a message. Accepted values stay the
// same when they are written and read again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/flags.h"
#include "job/job_file.h"
#include "job/job_spec.h"
#include "job/train_flags.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const edl::FlagTable& table = edl::job::TrainFlags();
  edl::FlagValues values(table);
  const edl::Status read = edl::job::SetFromJobFile(values, text);
  if (!read.ok()) {
    CHECK(!read.message().empty(), "an error without a message");
    return 0;
  }
  const std::string written = edl::job::ToJobFile(values);
  edl::FlagValues again(table);
  const edl::Status read_again = edl::job::SetFromJobFile(again, written);
  CHECK(read_again.ok(), "cannot read again what was written: {}: {}", written,
        read_again.message());
  for (const edl::FlagSpec& flag : table.specs()) {
    CHECK(again.Text(flag.name) == values.Text(flag.name), "--{} was '{}' and became '{}'",
          flag.name, values.Text(flag.name), again.Text(flag.name));
  }
  const auto job = edl::job::MakeJobSpec(values);
  CHECK(job.ok() || !job.status().message().empty(), "an error without a message");
  return 0;
}
