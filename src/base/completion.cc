#include "base/completion.h"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

namespace edl {
namespace {

// `text` quoted for a POSIX shell.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

bool IsBool(const FlagSpec& spec) {
  return spec.type == FlagType::kBool || spec.type == FlagType::kSwitch;
}

bool IsPath(const FlagSpec& spec) { return spec.value_name == "PATH"; }

std::vector<std::string> ValuesOf(const FlagSpec& spec) {
  if (IsBool(spec)) return {"true", "false"};
  std::vector<std::string> values;
  for (const std::string& choice : spec.choices) {
    if (!choice.empty()) values.push_back(choice);
  }
  return values;
}

std::string BashValues(const CompletedCommand& command) {
  std::string out;
  std::vector<std::string> paths;
  for (const FlagSpec& spec : command.flags->specs()) {
    if (spec.hidden) continue;
    if (IsPath(spec)) paths.push_back("--" + spec.name);
    const std::vector<std::string> values = ValuesOf(spec);
    if (values.empty()) continue;
    out += fmt::format("        --{}) COMPREPLY=($(compgen -W {} -- \"$word\")); return;;\n",
                       spec.name, Quoted(fmt::format("{}", fmt::join(values, " "))));
  }
  if (!paths.empty()) {
    out += fmt::format(
        "        {}) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\")); "
        "return;;\n",
        fmt::join(paths, "|"));
  }
  return out;
}

std::string BashCommand(const CompletedCommand& command) {
  std::string flags;
  std::string out = fmt::format("    {})\n", Quoted(command.name));
  if (command.flags != nullptr) {
    for (const FlagSpec& spec : command.flags->specs()) {
      if (!spec.hidden) flags += (flags.empty() ? "--" : " --") + spec.name;
    }
    out += "      case $flag in\n" + BashValues(command) + "      esac\n";
  }
  std::string words = Quoted(fmt::format("{}", fmt::join(command.words, " ")));
  if (!command.words_from.empty()) words += fmt::format("\" $({})\"", command.words_from);
  out += "      if [[ $word == -* ]]; then\n";
  out += fmt::format("        COMPREPLY=($(compgen -W {} -- \"$word\"))\n", Quoted(flags));
  out += "      else\n";
  out += fmt::format("        COMPREPLY=($(compgen -W {} -- \"$word\"))\n", words);
  out += "      fi;;\n";
  return out;
}

// A description for zsh, with colons, brackets and backslashes escaped.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshCommand(const CompletedCommand& command) {
  std::string out = fmt::format("    {})\n      _arguments -S \\\n", Quoted(command.name));
  if (command.flags != nullptr) {
    for (const FlagSpec& spec : command.flags->specs()) {
      if (spec.hidden) continue;
      std::string entry = fmt::format("--{}=[{}]:", spec.name, ZshText(spec.help));
      if (IsBool(spec)) {
        entry = fmt::format("--{}[{}]", spec.name, ZshText(spec.help));
      } else if (IsPath(spec)) {
        entry += "path:_files";
      } else if (!spec.choices.empty()) {
        entry += fmt::format("value:({})", fmt::join(ValuesOf(spec), " "));
      } else {
        entry += "value: ";
      }
      out += fmt::format("        {} \\\n", Quoted(entry));
    }
  }
  std::string words = fmt::format("{}", fmt::join(command.words, " "));
  if (!command.words_from.empty()) words += fmt::format(" $({})", command.words_from);
  out += fmt::format("        \"*:argument:({})\";;\n", words);
  return out;
}

// The first words of commands, each once, and the second words by first word.
struct Words {
  std::vector<std::string> first;
  std::map<std::string, std::vector<std::string>> second;
};

Words WordsOf(const std::vector<CompletedCommand>& commands) {
  Words words;
  for (const CompletedCommand& command : commands) {
    const size_t space = command.name.find(' ');
    const std::string first = command.name.substr(0, space);
    if (std::find(words.first.begin(), words.first.end(), first) == words.first.end()) {
      words.first.push_back(first);
    }
    if (space != std::string::npos) words.second[first].push_back(command.name.substr(space + 1));
  }
  return words;
}

}  // namespace

std::string BashCompletion(const std::string& program,
                           const std::vector<CompletedCommand>& commands) {
  const Words words = WordsOf(commands);
  std::string out =
      fmt::format("# bash completion of {0}: source <({0} completion bash)\n", program);
  out += fmt::format("_{}() {{\n", program);
  // Bash splits --flag=value at the '='.
  out +=
      "  local word=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  if [[ $word == = ]]; then word=; fi\n"
      "  if [[ $flag == = ]]; then flag=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  COMPREPLY=()\n"
      "  if (( COMP_CWORD == 1 )); then\n";
  out += fmt::format("    COMPREPLY=($(compgen -W {} -- \"$word\"))\n    return\n  fi\n",
                     Quoted(fmt::format("{}", fmt::join(words.first, " "))));
  out += "  local command=${COMP_WORDS[1]}\n";
  for (const auto& [first, seconds] : words.second) {
    out += fmt::format(
        "  if [[ $command == {} ]]; then\n"
        "    if (( COMP_CWORD == 2 )); then\n"
        "      COMPREPLY=($(compgen -W {} -- \"$word\"))\n      return\n    fi\n"
        "    command+=\" ${{COMP_WORDS[2]}}\"\n  fi\n",
        first, Quoted(fmt::format("{}", fmt::join(seconds, " "))));
  }
  out += "  case $command in\n";
  for (const CompletedCommand& command : commands) out += BashCommand(command);
  out += fmt::format("  esac\n}}\ncomplete -F _{0} {0}\n", program);
  return out;
}

std::string ZshCompletion(const std::string& program,
                          const std::vector<CompletedCommand>& commands) {
  std::string out =
      fmt::format("#compdef {0}\n# zsh completion of {0}: source <({0} completion zsh)\n", program);
  const Words words = WordsOf(commands);
  out += fmt::format("_{}() {{\n  local -a commands=(\n", program);
  for (const CompletedCommand& command : commands) {
    if (command.name.find(' ') != std::string::npos) continue;
    out += fmt::format("    {}\n", Quoted(command.name + ":" + ZshText(command.summary)));
  }
  for (const auto& [first, seconds] : words.second) {
    out += fmt::format("    {}\n", Quoted(fmt::format("{}:{}", first, fmt::join(seconds, ", "))));
  }
  out += "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n";
  out += "  local command=$words[2]\n  shift words; (( CURRENT-- ))\n";
  for (const auto& [first, seconds] : words.second) {
    out += fmt::format(
        "  if [[ $command == {} ]]; then\n"
        "    if (( CURRENT == 2 )); then compadd {}; return; fi\n"
        "    command+=\" $words[2]\"\n    shift words; (( CURRENT-- ))\n  fi\n",
        first, fmt::join(seconds, " "));
  }
  out += "  case $command in\n";
  for (const CompletedCommand& command : commands) out += ZshCommand(command);
  out += fmt::format("  esac\n}}\ncompdef _{0} {0}\n", program);
  return out;
}

}  // namespace edl
