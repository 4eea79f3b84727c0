#include "base/flag_help.h"

#include <algorithm>
#include <vector>

#include <fmt/ranges.h>

namespace edl {
namespace {

constexpr size_t kHelpColumn = 34;
constexpr size_t kHelpWidth = 100;

bool IsBool(const FlagSpec& spec) {
  return spec.type == FlagType::kBool || spec.type == FlagType::kSwitch;
}

std::string ChoicesOf(const FlagSpec& spec) {
  std::vector<std::string> choices;
  for (const std::string& choice : spec.choices) {
    if (!choice.empty()) choices.push_back(choice);
  }
  return fmt::format("{}", fmt::join(choices, "|"));
}

// "--backend=auto|local", "-f, --file=PATH", "--detach".
std::string UsageOf(const FlagSpec& spec) {
  std::string out = spec.letter == 0 ? "" : fmt::format("-{}, ", spec.letter);
  out += "--" + spec.name;
  if (IsBool(spec)) return spec.default_value == "true" ? out + "=false" : out;
  if (!spec.choices.empty()) return out + "=" + ChoicesOf(spec);
  return out + "=" + (spec.value_name.empty() ? "VALUE" : spec.value_name);
}

std::string HelpOf(const FlagSpec& spec) {
  std::string out = spec.scope.empty() ? spec.help : fmt::format("[{}] {}", spec.scope, spec.help);
  for (const std::string& alias : spec.aliases) out += fmt::format(" Also --{}.", alias);
  if (!spec.environment.empty()) out += fmt::format(" Also ${}.", spec.environment);
  if (!spec.default_value.empty() && !(IsBool(spec) && spec.default_value == "false")) {
    out += fmt::format(" Default: {}.", spec.default_value);
  }
  return out;
}

std::vector<std::string> Wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    size_t space = text.rfind(' ', width);
    if (space == std::string_view::npos || space == 0) space = text.find(' ');
    if (space == std::string_view::npos) break;
    lines.emplace_back(text.substr(0, space));
    text.remove_prefix(space + 1);
  }
  lines.emplace_back(text);
  return lines;
}

std::string HelpEntry(const FlagSpec& spec) {
  std::string out = "  " + UsageOf(spec);
  const std::vector<std::string> lines = Wrap(HelpOf(spec), kHelpWidth - kHelpColumn);
  size_t next = 0;
  if (out.size() + 2 <= kHelpColumn) {
    out.append(kHelpColumn - out.size(), ' ').append(lines.at(next++));
  }
  for (; next < lines.size(); ++next) {
    out.append("\n").append(kHelpColumn, ' ').append(lines.at(next));
  }
  return out + "\n";
}

std::vector<std::string> GroupsOf(const FlagTable& table) {
  std::vector<std::string> groups;
  for (const FlagSpec& spec : table.specs()) {
    if (std::find(groups.begin(), groups.end(), spec.group) == groups.end()) {
      groups.push_back(spec.group);
    }
  }
  return groups;
}

std::string EscapeMarkdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string FlagHelp(const FlagTable& table) {
  std::string out;
  const auto list = [&](const std::string& title, const auto& belongs) {
    std::string entries;
    for (const FlagSpec& spec : table.specs()) {
      if (!spec.hidden && belongs(spec)) entries += HelpEntry(spec);
    }
    if (entries.empty()) return;
    out += (out.empty() ? "" : "\n") + title + "\n" + entries;
  };
  list("Common flags", [](const FlagSpec& spec) { return spec.common; });
  for (const std::string& group : GroupsOf(table)) {
    list(group.empty() ? "Flags" : group,
         [&](const FlagSpec& spec) { return !spec.common && spec.group == group; });
  }
  return out;
}

std::string FlagMarkdown(const FlagTable& table) {
  std::string out;
  for (const std::string& group : GroupsOf(table)) {
    out += fmt::format("\n## {}\n\n| flag | default | meaning |\n|---|---|---|\n",
                       group.empty() ? "Flags" : group);
    for (const FlagSpec& spec : table.specs()) {
      if (spec.hidden || spec.group != group) continue;
      std::string meaning = spec.help;
      if (!spec.choices.empty()) meaning += fmt::format(" One of {}.", ChoicesOf(spec));
      for (const std::string& alias : spec.aliases) meaning += fmt::format(" Also `--{}`.", alias);
      if (spec.letter != 0) meaning += fmt::format(" Also `-{}`.", spec.letter);
      if (!spec.environment.empty()) meaning += fmt::format(" Also `${}`.", spec.environment);
      if (!spec.scope.empty()) meaning += fmt::format(" *[{}]*", spec.scope);
      const std::string value =
          spec.default_value.empty() ? "" : fmt::format("`{}`", spec.default_value);
      out += fmt::format("| `--{}` | {} | {} |\n", spec.name, EscapeMarkdown(value),
                         EscapeMarkdown(meaning));
    }
  }
  return out;
}

}  // namespace edl
