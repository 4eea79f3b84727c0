#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl {

enum class FlagType {
  kString,
  kInt,
  kBool,  // true, yes, on, t, y, 1 or their opposites; without a value the opposite of the default
  kSwitch,  // as kBool, but the next argument is never its value
};

// Where a value came from, in ascending order of priority.
enum class FlagSource { kDefault, kEnvironment, kFile, kCommandLine };
std::string_view NameOf(FlagSource source);

// The definition of a flag, for parsing, help, completion and documentation.
struct FlagSpec {
  std::string name;  // without dashes
  FlagType type = FlagType::kString;
  std::string default_value;
  std::string group;  // the heading in help
  std::string help;
  std::string value_name = {};            // in help: --name=VALUE_NAME
  std::vector<std::string> choices = {};  // empty: any value
  std::vector<std::string> aliases = {};  // other full names of the flag
  char letter = 0;                        // -f
  int64_t at_least = std::numeric_limits<int64_t>::min();
  int64_t at_most = std::numeric_limits<int64_t>::max();
  std::string environment = {};  // a variable whose value replaces the default
  std::string scope = {};        // where alone the flag has an effect; help shows it in brackets
  bool common = false;           // help lists it first
  bool upper_case = false;       // the value is upper-cased before it is checked
  // An abbreviation that matches flags of the original and this one means the original's. Keeps
  // scripts working that were written before this flag existed.
  bool not_in_original = false;
  bool hidden = false;  // not in help, documentation or completion
  // Hides secrets in a value before it is shown. Empty: the value is shown unchanged.
  std::function<std::string(std::string_view)> redact = {};
};

// The flags of a command. Immutable.
class FlagTable {
 public:
  explicit FlagTable(std::vector<FlagSpec> specs);

  const std::vector<FlagSpec>& specs() const { return specs_; }
  // The flag with this full name or alias; null if there is none.
  const FlagSpec* Find(std::string_view name) const;
  // The flag with this full name, alias or unique abbreviation. InvalidArgument: the message names
  // the flags that the abbreviation matches, or similar flags.
  Result<const FlagSpec*> Resolve(std::string_view name) const;
  const FlagSpec* FindLetter(char letter) const;

 private:
  std::vector<FlagSpec> specs_;
};

// A valid value for every flag of a table, and the positional arguments.
// The table outlives it. Confined.
class FlagValues {
 public:
  explicit FlagValues(const FlagTable& table);

  // REQUIRES (all four): the table has `name` with that type.
  const std::string& String(std::string_view name) const;
  int64_t Int(std::string_view name) const;
  bool Bool(std::string_view name) const;  // also kSwitch

  FlagSource source(std::string_view name) const;
  bool given(std::string_view name) const { return source(name) != FlagSource::kDefault; }
  // The value of any type in its canonical spelling ("true", "3").
  const std::string& Text(std::string_view name) const;
  // Text() with secrets hidden.
  std::string ShownText(std::string_view name) const;

  // Replaces the value, unless the current one has a source of higher priority. InvalidArgument:
  // the message names flag and value. REQUIRES: the table has `name`.
  Status Set(std::string_view name, std::string_view value, FlagSource source);

  // Flags that were given different values by the same source, each once.
  const std::vector<std::string>& replaced() const { return replaced_; }

  const FlagTable& table() const { return *table_; }
  const std::vector<std::string>& arguments() const { return arguments_; }
  void AddArgument(std::string argument) { arguments_.push_back(std::move(argument)); }

 private:
  struct Value {
    std::string text;
    FlagSource source = FlagSource::kDefault;
  };
  const Value& Get(std::string_view name) const;

  const FlagTable* table_;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> arguments_;
  std::vector<std::string> replaced_;
};

// Parses arguments as Python's argparse does: --flag value, --flag=value, -f value, unique
// abbreviations, "--" before positional arguments; the last of several values is used. Unlike in
// argparse's parse_known_args, an unknown flag is an error.
Result<FlagValues> ParseFlags(const FlagTable& table, std::span<const std::string> arguments);

// Sets the flags that have FlagSpec::environment from that variable.
Status SetFromEnvironment(FlagValues& values,
                          const std::function<const char*(const char*)>& variable);

// At most three of `names` that are similar to the misspelt `name`, the most similar first.
std::vector<std::string> NearestNames(std::string_view name, const std::vector<std::string>& names);

}  // namespace edl
