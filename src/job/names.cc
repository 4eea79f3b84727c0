#include "job/names.h"

#include <algorithm>

#include <fmt/format.h>

namespace edl::job {
namespace {

bool IsSmallLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Status CheckJobName(std::string_view name) {
  if (name.empty()) return InvalidArgument("the job has no name: give --job_name=NAME");
  const auto fits = [](char c) { return IsSmallLetter(c) || IsDigit(c) || c == '-'; };
  const auto wrong = std::find_if_not(name.begin(), name.end(), fits);
  constexpr std::string_view kRule = "a name has small letters, digits and '-' only";
  if (wrong != name.end()) {
    return InvalidArgument("--job_name={} has '{}' at character {}; {}", name, *wrong,
                           wrong - name.begin() + 1, kRule);
  }
  if (!IsSmallLetter(name.front())) {
    return InvalidArgument("--job_name={} does not begin with a letter", name);
  }
  if (name.back() == '-') return InvalidArgument("--job_name={} ends with '-'", name);
  if (name.size() > kLongestJobName) {
    return InvalidArgument(
        "--job_name={} has {} characters; with what is added to it for its replicas' names at most "
        "{} fit",
        name, name.size(), kLongestJobName);
  }
  return Ok();
}

std::string MasterName(std::string_view job) { return fmt::format("elasticdl-{}-master", job); }

std::string ReplicaName(std::string_view job, Role role, int64_t id) {
  return fmt::format("{}-edljob-{}-{}", job, NameOf(role), id);
}

}  // namespace edl::job
