// The input is a command line with one argument per line. Parsing it returns values, or an error
// with a message. Every accepted value can be set again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/flags.h"
#include "job/job_spec.h"
#include "job/train_flags.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> arguments;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    arguments.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }

  const edl::FlagTable& table = edl::job::TrainFlags();
  const auto values = edl::ParseFlags(table, arguments);
  if (!values.ok()) {
    CHECK(!values.status().message().empty(), "an error without a message");
    return 0;
  }
  edl::FlagValues again(table);
  for (const edl::FlagSpec& flag : table.specs()) {
    const std::string& value = values->Text(flag.name);
    const edl::Status set = again.Set(flag.name, value, edl::FlagSource::kCommandLine);
    CHECK(set.ok() && again.Text(flag.name) == value, "--{}={} cannot be set again", flag.name,
          value);
    (void)values->ShownText(flag.name);
  }
  const auto job = edl::job::MakeJobSpec(*values);
  CHECK(job.ok() || !job.status().message().empty(), "an error without a message");
  return 0;
}
