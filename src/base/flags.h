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
  kBool,    // bare: the opposite of the default; else true, yes, on, t, y, 1 or their opposites
  kSwitch,  // as kBool, but never takes the next argument as its value
};

// Where a value came from; a later one here replaces an earlier one.
enum class FlagSource { kDefault, kEnvironment, kFile, kCommandLine };
std::string_view NameOf(FlagSource source);

// One flag. All that parsing, help, completion and documentation know about it.
struct FlagSpec {
  std::string name;  // without dashes
  FlagType type = FlagType::kString;
  std::string default_value;
  std::string group;  // under which help lists it
  std::string help;
  std::string value_name = {};            // in help: --name=VALUE_NAME
  std::vector<std::string> choices = {};  // empty: anything
  std::vector<std::string> aliases = {};  // full names that mean the same
  char letter = 0;                        // -f
  int64_t at_least = std::numeric_limits<int64_t>::min();
  int64_t at_most = std::numeric_limits<int64_t>::max();
  std::string environment = {};  // the variable that gives a value where no other source does
  std::string scope = {};        // help shows it in brackets: where alone the flag has an effect
  bool common = false;           // help lists it first
  bool upper_case = false;       // the value is upper-cased before it is checked
  // An abbreviation that also fits a flag without this mark means that one. For flags that came
  // later than the scripts which abbreviate.
  bool not_in_original = false;
  bool hidden = false;  // not in help, documentation or completion
  // What may be shown of a value that holds secrets; empty: all of it.
  std::function<std::string(std::string_view)> redact = {};
};

// The flags of a command. Immutable.
class FlagTable {
 public:
  explicit FlagTable(std::vector<FlagSpec> specs);

  const std::vector<FlagSpec>& specs() const { return specs_; }
  // By full name or alias; null: there is none.
  const FlagSpec* Find(std::string_view name) const;
  // By full name, alias or an abbreviation that fits one flag alone. InvalidArgument names those
  // that it fits, or the nearest ones.
  Result<const FlagSpec*> Resolve(std::string_view name) const;
  const FlagSpec* FindLetter(char letter) const;

 private:
  std::vector<FlagSpec> specs_;
};

// A value for every flag of a table, each valid for its flag, and the arguments that are no flags.
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
  // The value in its one spelling ("true", "3"), whatever the type.
  const std::string& Text(std::string_view name) const;
  // The same with secrets hidden.
  std::string ShownText(std::string_view name) const;

  // Replaces the value unless one from a stronger source is there. InvalidArgument names flag and
  // value. REQUIRES: the table has `name`.
  Status Set(std::string_view name, std::string_view value, FlagSource source);

  // Flags whose value was replaced by another one from the same source, once each.
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

// Reads arguments as Python's argparse does: --flag value, --flag=value, -f value, unique
// abbreviations, "--" before what is no flag; the last of several wins. Unlike there, an unknown
// flag is an error.
Result<FlagValues> ParseFlags(const FlagTable& table, std::span<const std::string> arguments);

// Adds values from the environment for the flags that name a variable.
Status SetFromEnvironment(FlagValues& values,
                          const std::function<const char*(const char*)>& variable);

// The names in `names` that a misspelt `name` may have meant, nearest first, at most three.
std::vector<std::string> NearestNames(std::string_view name, const std::vector<std::string>& names);

}  // namespace edl
