// The input is a file of manifests. It is converted, or rejected with a message that names the
// document. The conversion of a converted file changes nothing, and what is written is read as the
// same values.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tfjob_convert/convert.h"
#include <fmt/ranges.h>

#include "base/check.h"
#include "kube/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  using edl::tfjob_convert::JsonOutput;
  for (const JsonOutput output : {JsonOutput::kYaml, JsonOutput::kJson}) {
    const auto once = edl::tfjob_convert::Convert(text, output);
    if (!once.ok()) {
      CHECK(once.status().message().starts_with("document "),
            "an error that does not name the document: {}", once.status().message());
      return 0;
    }
    CHECK(once->changed_jobs > 0 || once->text == text || !once->notes.empty(),
          "the text changed without a note");
    const auto twice = edl::tfjob_convert::Convert(once->text, output);
    CHECK(twice.ok(), "cannot read what was written: {}: {}", twice.status().message(), once->text);
    CHECK(twice->text == once->text, "a second conversion changed the text: {}: {}: {}",
          fmt::join(twice->notes, "\n"), once->text, twice->text);
  }
  const auto documents = edl::kube::ReadYaml(text);
  if (!documents.ok()) return 0;
  for (const edl::kube::YamlDocument& document : *documents) {
    if (!document.value.is_structured()) continue;
    const std::string written = edl::kube::ToOrderedYaml(document.value);
    const auto again = edl::kube::ReadYaml(written);
    CHECK(again.ok(), "cannot read what was written: {}: {}", again.status().message(), written);
    CHECK(again->front().value == document.value, "the value changed: {}: {}", document.text,
          written);
  }
  return 0;
}
