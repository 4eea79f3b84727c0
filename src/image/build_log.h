#pragma once

#include <map>
#include <string>
#include <string_view>

namespace edl::image {

// Reads what a builder writes while it works, to tell which step failed and why. Confined.
class BuildLog {
 public:
  // A piece of it, cut anywhere.
  void Hear(std::string_view text);

  // "step 3/6, RUN pip install ..."; empty: it did not come to a step.
  const std::string& step() const { return step_; }
  // The last line that calls itself an error, without that word; else the last of all.
  const std::string& reason() const { return reason_.empty() ? last_ : reason_; }

 private:
  void HearLine(std::string_view line);
  // A line of docker's newer language: "#7 [2/4] RUN x", "#7 ERROR: y".
  void HearNumbered(std::string_view line);

  std::string line_;  // that has no end yet
  std::string step_;
  std::string reason_;
  std::string last_;                                          // line that was not empty
  std::map<std::string, std::string, std::less<>> numbered_;  // steps
};

}  // namespace edl::image
