#include "job/envs.h"

#include <optional>
#include <set>
#include <vector>

#include "base/text.h"
#include "job/pairs.h"

namespace edl::job {
namespace {

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The variable name in `text`, without white space around it; nullopt: not a variable name.
std::optional<std::string_view> NameIn(std::string_view text) {
  const std::string_view name = Trim(text);
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return std::nullopt;
  // Kubernetes also allows '-' and '.' within names.
  for (const char c : name) {
    if (!IsNameCharacter(c) && c != '-' && c != '.') return std::nullopt;
  }
  return name;
}

// The variable that "NAME=..." sets; nullopt: the piece does not begin with NAME=.
std::optional<std::string_view> NameOfPiece(std::string_view piece) {
  const size_t equals = piece.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  return NameIn(piece.substr(0, equals));
}

Result<std::vector<Pair>> ParseText(std::string_view text) {
  std::vector<Pair> pairs;
  size_t begin = 0;
  bool any_value = false;  // a name without '=' is a variable only before the first value
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view piece = text.substr(begin, comma - begin);
    const std::string_view bare = any_value ? "" : NameIn(piece).value_or("");
    if (const auto name = NameOfPiece(piece)) {
      any_value = true;
      pairs.push_back({std::string(*name), std::string(piece.substr(piece.find('=') + 1)),
                       static_cast<size_t>(name->data() - text.data()) + 1});
    } else if (!bare.empty()) {
      pairs.push_back({std::string(bare), "", static_cast<size_t>(bare.data() - text.data()) + 1});
    } else if (pairs.empty()) {
      return InvalidArgument("'{}'{} does not begin with NAME=", Trim(piece), At(begin + 1));
    } else {
      pairs.back().value.append(",").append(piece);
    }
    begin = comma + 1;
  }
  return pairs;
}

}  // namespace

Result<std::map<std::string, std::string>> ParseEnvs(std::string_view text) {
  std::map<std::string, std::string> envs;
  text = Trim(text);
  if (text.empty()) return envs;
  const bool is_json = text.front() == '{';
  EDL_ASSIGN_OR_RETURN(const std::vector<Pair> pairs,
                       is_json ? ParseJsonPairs(text) : ParseText(text));
  for (const Pair& pair : pairs) {
    if (pair.key.empty() || pair.key.find_first_of(std::string_view("=\0", 2)) < pair.key.size() ||
        pair.value.find('\0') != std::string::npos) {
      return InvalidArgument(
          "'{}'{}: the name of an environment variable must not be empty or contain '=', and "
          "neither name nor value may contain a zero byte",
          pair.key, At(pair.key_at));
    }
    if (!envs.insert_or_assign(pair.key, pair.value).second && is_json) {
      return InvalidArgument("'{}' is given twice", pair.key);
    }
  }
  return envs;
}

std::vector<std::string> EnvsRemarks(std::string_view text) {
  text = Trim(text);
  std::vector<std::string> remarks;
  if (text.empty() || text.front() == '{') return remarks;
  const Result<std::vector<Pair>> pairs = ParseText(text);
  if (!pairs.ok()) return remarks;
  std::set<std::string> seen;
  for (const Pair& pair : *pairs) {
    // Values may be secret, so none is shown.
    const size_t after = pair.key_at - 1 + pair.key.size();
    if (after >= text.size() || Trim(text.substr(after)).empty() ||
        Trim(text.substr(after)).front() != '=') {
      remarks.push_back(fmt::format("{0} has no '=' and is set to an empty value", pair.key));
    }
    if (!seen.insert(pair.key).second) {
      remarks.push_back(fmt::format("{} is given twice; the last value is used", pair.key));
    }
  }
  return remarks;
}

std::string RedactEnvs(std::string_view text) {
  const auto envs = ParseEnvs(text);
  if (!envs.ok()) return "***";
  std::string out;
  for (const auto& [name, value] : *envs) {
    out += fmt::format("{}{}=***", out.empty() ? "" : ",", name);
  }
  return out;
}

}  // namespace edl::job
