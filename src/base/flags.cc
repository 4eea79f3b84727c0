#include "base/flags.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/ranges.h>

#include "base/utf8.h"

namespace edl {
namespace {

bool IsOneOf(std::string_view value, std::initializer_list<std::string_view> set) {
  return std::find(set.begin(), set.end(), value) != set.end();
}

std::string Cased(std::string_view text, int (*to_case)(int)) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(to_case(static_cast<unsigned char>(c)));
  return out;
}

Result<std::string> CheckBool(const FlagSpec& spec, std::string_view value) {
  const std::string lower = Cased(value, std::tolower);
  if (IsOneOf(lower, {"true", "yes", "on", "t", "y", "1"})) return std::string("true");
  if (IsOneOf(lower, {"false", "no", "off", "f", "n", "0"})) return std::string("false");
  return InvalidArgument("--{}={} is neither true nor false; write --{}=true or --{}=false",
                         spec.name, value, spec.name, spec.name);
}

Result<std::string> CheckInt(const FlagSpec& spec, std::string_view value) {
  std::string_view digits = value;
  if (digits.size() > 1 && digits.front() == '+') digits.remove_prefix(1);
  int64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error == std::errc::result_out_of_range) {
    return InvalidArgument("--{}={}: the number is too large", spec.name, value);
  }
  if (error != std::errc() || stop != end) {
    return InvalidArgument("--{}={} is not a whole number", spec.name, value);
  }
  if (number < spec.at_least) {
    return InvalidArgument("--{}={}: the smallest allowed value is {}", spec.name, value,
                           spec.at_least);
  }
  if (number > spec.at_most) {
    return InvalidArgument("--{}={}: the largest allowed value is {}", spec.name, value,
                           spec.at_most);
  }
  return std::to_string(number);
}

// The value in its canonical spelling.
Result<std::string> CheckValue(const FlagSpec& spec, std::string_view given) {
  const std::string value = spec.upper_case ? Cased(given, std::toupper) : std::string(given);
  if (spec.type == FlagType::kInt) return CheckInt(spec, value);
  if (spec.type != FlagType::kString) return CheckBool(spec, value);
  if (value.find('\0') != std::string::npos) {
    return InvalidArgument("--{} contains a zero byte, which cannot be passed to a program",
                           spec.name);
  }
  // The job's spec is JSON, which would change other bytes.
  if (!IsUtf8(value)) {
    return InvalidArgument("--{} is not valid UTF-8; rename a path that has other bytes",
                           spec.name);
  }
  if (!spec.choices.empty() &&
      std::find(spec.choices.begin(), spec.choices.end(), value) == spec.choices.end()) {
    std::vector<std::string> shown;
    for (const std::string& choice : spec.choices) shown.push_back("'" + choice + "'");
    return InvalidArgument("--{}={} is not one of {}", spec.name, value, fmt::join(shown, ", "));
  }
  return value;
}

std::vector<std::string> VisibleNames(const FlagTable& table) {
  std::vector<std::string> names;
  for (const FlagSpec& spec : table.specs()) {
    if (!spec.hidden) names.push_back(spec.name);
  }
  return names;
}

// The Damerau-Levenshtein distance: insertions, deletions, substitutions and transpositions.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

bool IsNegativeNumber(std::string_view text) {
  if (text.size() < 2 || text.front() != '-') return false;
  return text.find_first_not_of("0123456789.", 1) == std::string_view::npos;
}

// Whether argparse would treat the argument as a flag and not as a value.
bool LooksLikeFlag(const FlagTable& table, std::string_view argument) {
  if (argument.size() < 2 || argument.front() != '-') return false;
  const std::string_view name = argument.substr(0, argument.find('='));
  if (name.starts_with("--") && name.size() > 2) {
    const Result<const FlagSpec*> flag = table.Resolve(name.substr(2));
    if (flag.ok()) return true;
  }
  if (IsNegativeNumber(argument)) return false;
  return argument.find(' ') == std::string_view::npos;
}

struct Parser {
  const FlagTable& table;
  std::span<const std::string> arguments;
  FlagValues values;
  size_t next = 0;

  std::optional<std::string> TakeValue() {
    if (next >= arguments.size() || arguments[next] == "--") return std::nullopt;
    if (LooksLikeFlag(table, arguments[next])) return std::nullopt;
    return arguments[next++];
  }

  Status TakeFlag(const FlagSpec& spec, std::optional<std::string> value) {
    const bool is_bool = spec.type == FlagType::kBool || spec.type == FlagType::kSwitch;
    if (!value.has_value() && spec.type != FlagType::kSwitch) value = TakeValue();
    if (!value.has_value() && is_bool) value = spec.default_value == "true" ? "false" : "true";
    if (!value.has_value()) {
      return InvalidArgument("--{} needs a value: --{}={}", spec.name, spec.name,
                             spec.value_name.empty() ? "VALUE" : spec.value_name);
    }
    return values.Set(spec.name, *value, FlagSource::kCommandLine);
  }

  Status TakeLong(std::string_view text) {
    const size_t equals = text.find('=');
    EDL_ASSIGN_OR_RETURN(const FlagSpec* spec, table.Resolve(text.substr(0, equals)));
    std::optional<std::string> value;
    if (equals != std::string_view::npos) value = std::string(text.substr(equals + 1));
    return TakeFlag(*spec, std::move(value));
  }

  Status TakeShort(std::string_view text) {
    const FlagSpec* spec = table.FindLetter(text.front());
    if (spec == nullptr) return InvalidArgument("there is no flag -{}", text);
    text.remove_prefix(1);
    if (text.empty()) return TakeFlag(*spec, std::nullopt);
    if (text.front() == '=') text.remove_prefix(1);
    return TakeFlag(*spec, std::string(text));
  }

  Status Run() {
    bool flags_end = false;
    while (next < arguments.size()) {
      const std::string& argument = arguments[next++];
      if (!flags_end && argument == "--") {
        flags_end = true;
      } else if (flags_end || !LooksLikeFlag(table, argument)) {
        values.AddArgument(argument);
      } else if (argument.starts_with("--")) {
        EDL_RETURN_IF_ERROR(TakeLong(std::string_view(argument).substr(2)));
      } else {
        EDL_RETURN_IF_ERROR(TakeShort(std::string_view(argument).substr(1)));
      }
    }
    return Ok();
  }
};

}  // namespace

std::string_view NameOf(FlagSource source) {
  switch (source) {
    case FlagSource::kDefault:
      return "default";
    case FlagSource::kEnvironment:
      return "environment";
    case FlagSource::kFile:
      return "file";
    case FlagSource::kCommandLine:
      return "command line";
  }
  return "?";
}

FlagTable::FlagTable(std::vector<FlagSpec> specs) : specs_(std::move(specs)) {
  for (const FlagSpec& spec : specs_) {
    CHECK(Find(spec.name) == &spec, "flag --{} is defined twice", spec.name);
    for (const std::string& alias : spec.aliases) {
      CHECK(Find(alias) == &spec, "flag --{} is defined twice", alias);
    }
  }
}

const FlagSpec* FlagTable::Find(std::string_view name) const {
  for (const FlagSpec& spec : specs_) {
    if (spec.name == name) return &spec;
    if (std::find(spec.aliases.begin(), spec.aliases.end(), name) != spec.aliases.end()) {
      return &spec;
    }
  }
  return nullptr;
}

const FlagSpec* FlagTable::FindLetter(char letter) const {
  for (const FlagSpec& spec : specs_) {
    if (spec.letter != 0 && spec.letter == letter) return &spec;
  }
  return nullptr;
}

Result<const FlagSpec*> FlagTable::Resolve(std::string_view name) const {
  if (const FlagSpec* exact = Find(name)) return exact;
  if (name.empty()) return InvalidArgument("the name of a flag is missing after '--'");
  for (const bool not_in_original : {false, true}) {
    std::vector<const FlagSpec*> fits;
    for (const FlagSpec& spec : specs_) {
      if (spec.not_in_original != not_in_original || spec.hidden) continue;
      const auto fit = [&](const std::string& full) { return full.starts_with(name); };
      if (fit(spec.name) || std::any_of(spec.aliases.begin(), spec.aliases.end(), fit)) {
        fits.push_back(&spec);
      }
    }
    if (fits.size() == 1) return fits.front();
    if (fits.size() > 1) {
      std::vector<std::string> names;
      names.reserve(fits.size());
      for (const FlagSpec* spec : fits) names.push_back("--" + spec->name);
      return InvalidArgument("--{} is ambiguous: it matches {}", name, fmt::join(names, ", "));
    }
  }
  std::vector<std::string> nearest = NearestNames(name, VisibleNames(*this));
  if (nearest.empty()) return InvalidArgument("there is no flag --{}", name);
  for (std::string& near : nearest) near.insert(0, "--");
  return InvalidArgument("there is no flag --{}; did you mean {}?", name,
                         fmt::join(nearest, " or "));
}

FlagValues::FlagValues(const FlagTable& table) : table_(&table) {
  for (const FlagSpec& spec : table.specs()) values_[spec.name] = Value{spec.default_value};
}

const FlagValues::Value& FlagValues::Get(std::string_view name) const {
  const auto value = values_.find(name);
  CHECK(value != values_.end(), "there is no flag --{}", name);
  return value->second;
}

const std::string& FlagValues::String(std::string_view name) const { return Get(name).text; }
const std::string& FlagValues::Text(std::string_view name) const { return Get(name).text; }

int64_t FlagValues::Int(std::string_view name) const {
  const std::string& text = Get(name).text;
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  CHECK(error == std::errc() && stop == text.data() + text.size(), "--{}={} is not a number", name,
        text);
  return number;
}

bool FlagValues::Bool(std::string_view name) const { return Get(name).text == "true"; }
FlagSource FlagValues::source(std::string_view name) const { return Get(name).source; }

std::string FlagValues::ShownText(std::string_view name) const {
  const FlagSpec* spec = table_->Find(name);
  const std::string& text = Get(name).text;
  return spec->redact ? spec->redact(text) : text;
}

Status FlagValues::Set(std::string_view name, std::string_view value, FlagSource source) {
  const FlagSpec* spec = table_->Find(name);
  CHECK(spec != nullptr, "there is no flag --{}", name);
  EDL_ASSIGN_OR_RETURN(std::string text, CheckValue(*spec, value));
  Value& current = values_.find(spec->name)->second;
  if (source < current.source) return Ok();
  const bool again = source == current.source && source != FlagSource::kDefault;
  if (again && text != current.text &&
      std::find(replaced_.begin(), replaced_.end(), spec->name) == replaced_.end()) {
    replaced_.push_back(spec->name);
  }
  current = Value{std::move(text), source};
  return Ok();
}

Result<FlagValues> ParseFlags(const FlagTable& table, std::span<const std::string> arguments) {
  Parser parser{table, arguments, FlagValues(table)};
  EDL_RETURN_IF_ERROR(parser.Run());
  return std::move(parser.values);
}

Status SetFromEnvironment(FlagValues& values,
                          const std::function<const char*(const char*)>& variable) {
  for (const FlagSpec& spec : values.table().specs()) {
    if (spec.environment.empty()) continue;
    const char* value = variable(spec.environment.c_str());
    if (value == nullptr || *value == '\0') continue;
    EDL_RETURN_IF_ERROR(
        values.Set(spec.name, value, FlagSource::kEnvironment).Within(spec.environment));
  }
  return Ok();
}

std::vector<std::string> NearestNames(std::string_view name,
                                      const std::vector<std::string>& names) {
  // Longer names match nothing, and the cost of the distance grows with the length.
  constexpr size_t kLongestName = 64;
  if (name.size() > kLongestName) return {};
  const size_t limit = 1 + name.size() / 3;
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& candidate : names) {
    const size_t distance = EditDistance(name, candidate);
    if (distance <= limit) near.emplace_back(distance, candidate);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (const auto& [distance, candidate] : near) {
    // Only names that are about as similar as the best one.
    if (distance > near.front().first + 1 || out.size() == 3) break;
    out.push_back(candidate);
  }
  return out;
}

}  // namespace edl
