#include "job/names.h"

#include <algorithm>

#include <fmt/format.h>

namespace edl::job {
namespace {

bool IsSmallLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A similar name that is valid; empty: none was found.
std::string Suggestion(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool fits = IsSmallLetter(lower) || (IsDigit(lower) && !out.empty());
    if (fits) {
      out += lower;
    } else if (!out.empty() && out.back() != '-' && static_cast<unsigned char>(c) < 0x80) {
      out += '-';
    }
  }
  out.resize(std::min(out.size(), kLongestJobName));
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

}  // namespace

Status CheckJobName(std::string_view name) {
  if (name.empty()) return InvalidArgument("--job_name is missing: give --job_name=NAME");
  const auto fits = [](char c) { return IsSmallLetter(c) || IsDigit(c) || c == '-'; };
  const auto wrong = std::find_if_not(name.begin(), name.end(), fits);
  constexpr std::string_view kRule = "a name has only lower-case letters, digits and '-'";
  if (wrong != name.end()) {
    const auto at = static_cast<size_t>(wrong - name.begin());
    // The error shows all bytes of a UTF-8 character. Every character before it is one byte long.
    size_t end = at + 1;
    while (end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) ++end;
    const std::string fixed = Suggestion(name);
    return InvalidArgument("--job_name={} has '{}' at character {}; {}{}", name,
                           name.substr(at, end - at), at + 1, kRule,
                           fixed.empty() ? "" : fmt::format(", for example --job_name={}", fixed));
  }
  if (!IsSmallLetter(name.front())) {
    return InvalidArgument("--job_name={} must begin with a letter", name);
  }
  if (name.back() == '-') return InvalidArgument("--job_name={} must not end with '-'", name);
  if (name.size() > kLongestJobName) {
    return InvalidArgument(
        "--job_name={} has {} characters; at most {} are allowed, because the names of replicas "
        "add "
        "to it",
        name, name.size(), kLongestJobName);
  }
  return Ok();
}

std::string MasterName(std::string_view job) { return fmt::format("elasticdl-{}-master", job); }

std::string ReplicaName(std::string_view job, Role role, int64_t id, Naming naming) {
  return naming == Naming::kModel ? fmt::format("elasticdl-{}-{}-{}", job, NameOf(role), id)
                                  : fmt::format("{}-edljob-{}-{}", job, NameOf(role), id);
}

std::optional<std::string> ReplicaLabel(std::string_view job, std::string_view name) {
  for (const std::string& prefix :
       {fmt::format("{}-edljob-", job), fmt::format("elasticdl-{}-", job)}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view label = name.substr(prefix.size());
    const size_t dash = label.find('-');
    if (dash == std::string_view::npos || dash + 1 == label.size()) continue;
    const std::string_view id = label.substr(dash + 1);
    if (RoleFromName(label.substr(0, dash)) && std::ranges::all_of(id, IsDigit)) {
      return std::string(label);
    }
  }
  return std::nullopt;
}

}  // namespace edl::job
