#include "job/envs.h"

#include <optional>
#include <vector>

#include "job/pairs.h"

namespace edl::job {
namespace {

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The variable that "NAME=..." sets, white space in front allowed; nothing if it does not begin so.
std::optional<std::string_view> NameOfPiece(std::string_view piece) {
  const size_t equals = piece.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view name = Trim(piece.substr(0, equals));
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return std::nullopt;
  // Kubernetes also allows '-' and '.' within names.
  for (const char c : name) {
    if (!IsNameCharacter(c) && c != '-' && c != '.') return std::nullopt;
  }
  return name;
}

Result<std::vector<Pair>> ParseText(std::string_view text) {
  std::vector<Pair> pairs;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view piece = text.substr(begin, comma - begin);
    if (const auto name = NameOfPiece(piece)) {
      pairs.push_back({std::string(*name), std::string(piece.substr(piece.find('=') + 1)),
                       static_cast<size_t>(name->data() - text.data()) + 1});
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
      return InvalidArgument("'{}'{} cannot be a variable's name or value", pair.key,
                             At(pair.key_at));
    }
    if (!envs.emplace(pair.key, pair.value).second) {
      return InvalidArgument("'{}'{} is there twice", pair.key, At(pair.key_at));
    }
  }
  return envs;
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
