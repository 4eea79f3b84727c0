#pragma once

#include <map>
#include <string>
#include <string_view>

namespace edl::image {

// Parses the output of a builder to find the step that failed and the error. Confined.
class BuildLog {
 public:
  // Adds a piece of output, which may end in the middle of a line.
  void Append(std::string_view text);

  // The last step: "step 3/6, RUN pip install ..."; empty: no step has begun.
  const std::string& step() const { return step_; }
  // The last line that begins with "error", without this prefix; if there is none, the last line.
  const std::string& reason() const { return reason_.empty() ? last_ : reason_; }

 private:
  void ReadLine(std::string_view line);
  // A line of docker's BuildKit: "#7 [2/4] RUN x", "#7 ERROR: y".
  void ReadNumberedLine(std::string_view line);

  std::string line_;  // the beginning of a line that has no newline yet
  std::string step_;
  std::string reason_;
  std::string last_;                                          // the last line that was not empty
  std::map<std::string, std::string, std::less<>> numbered_;  // BuildKit's steps by "#7"
};

}  // namespace edl::image
