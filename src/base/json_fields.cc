#include "base/json_fields.h"

#include <cmath>
#include <utility>

#include <fmt/ranges.h>

#include "base/json.h"

namespace edl {
namespace {

using nlohmann::json;

// The longest part of an unknown field's name in an error.
constexpr size_t kMostOfName = 100;

}  // namespace

JsonFields::JsonFields(const json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object())
    Fail(InvalidArgument("{}: expected a JSON object, found {}", where_, Excerpt(object)));
}

void JsonFields::Take(const char* name, std::string& value) {
  const json* const given = Find(name);
  if (given == nullptr) return;
  if (!given->is_string()) return FailFor(name, *given, "a string");
  value = given->get_ref<const std::string&>();
}

void JsonFields::Take(const char* name, bool& value) {
  const json* const given = Find(name);
  if (given == nullptr) return;
  if (!given->is_boolean()) return FailFor(name, *given, "true or false");
  value = given->get<bool>();
}

void JsonFields::Take(const char* name, float& value) {
  double number = value;
  Take(name, number);
  value = static_cast<float>(number);
  if (!std::isfinite(value)) FailFor(name, number, "a number that a float can hold");
}

void JsonFields::Take(const char* name, double& value) {
  const json* const given = Find(name);
  if (given == nullptr) return;
  if (!given->is_number()) return FailFor(name, *given, "a number");
  value = given->get<double>();
  if (!std::isfinite(value)) FailFor(name, *given, "a number that a double can hold");
}

void JsonFields::Take(const char* name, uint64_t& value, uint64_t least, uint64_t most) {
  const json* const given = Find(name);
  if (given == nullptr) return;
  if (!given->is_number_unsigned() || given->get<uint64_t>() < least ||
      given->get<uint64_t>() > most) {
    return FailFor(name, *given, fmt::format("a whole number in {}..{}", least, most));
  }
  value = given->get<uint64_t>();
}

void JsonFields::Take(const char* name, int64_t& value, int64_t least, int64_t most) {
  const json* const given = Find(name);
  if (given == nullptr) return;
  const bool too_large = given->is_number_unsigned() &&
                         given->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
  if (!given->is_number_integer() || too_large || given->get<int64_t>() < least ||
      given->get<int64_t>() > most) {
    return FailFor(name, *given, fmt::format("a whole number in {}..{}", least, most));
  }
  value = given->get<int64_t>();
}

void JsonFields::Take(const char* name, std::vector<std::string>& value) {
  const json* const given = Find(name);
  if (given == nullptr) return;
  if (!given->is_array()) return FailFor(name, *given, "a list of strings");
  std::vector<std::string> texts;
  for (const json& item : *given) {
    if (!item.is_string()) return FailFor(name, item, "a string in a list of strings");
    texts.push_back(item.get_ref<const std::string&>());
  }
  value = std::move(texts);
}

void JsonFields::Take(const char* name, std::map<std::string, std::string>& value) {
  const json* const given = Find(name);
  if (given == nullptr) return;
  if (!given->is_object()) return FailFor(name, *given, "an object of strings");
  std::map<std::string, std::string> texts;
  for (const auto& [key, item] : given->items()) {
    if (!item.is_string()) return FailFor(name, item, "a string in an object of strings");
    texts[key] = item.get_ref<const std::string&>();
  }
  value = std::move(texts);
}

std::string JsonFields::Text(const char* name) {
  std::string value;
  Take(name, value);
  return value;
}

bool JsonFields::Flag(const char* name) {
  bool value = false;
  Take(name, value);
  return value;
}

int64_t JsonFields::Integer(const char* name, int64_t least, int64_t most) {
  int64_t value = 0;
  Take(name, value, least, most);
  return value;
}

std::vector<std::string> JsonFields::Texts(const char* name) {
  std::vector<std::string> value;
  Take(name, value);
  return value;
}

std::map<std::string, std::string> JsonFields::TextMap(const char* name) {
  std::map<std::string, std::string> value;
  Take(name, value);
  return value;
}

const json& JsonFields::Object(const char* name) {
  static const json empty = json::object();
  const json* const given = Find(name);
  if (given != nullptr && given->is_object()) return *given;
  FailFor(name, given == nullptr ? json() : *given, "an object");
  return empty;
}

const json* JsonFields::Find(const char* name) {
  known_.insert(name);
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

void JsonFields::Fail(Status failure) {
  if (status_.ok()) status_ = std::move(failure);
}

Status JsonFields::Done() const {
  if (!status_.ok()) return status_;
  for (const auto& [name, value] : object_.items()) {
    if (known_.contains(name)) continue;
    return InvalidArgument("{}: unknown field '{}'; expected one of {}", where_,
                           name.substr(0, kMostOfName), fmt::join(known_, ", "));
  }
  return Ok();
}

void JsonFields::FailFor(const char* name, const json& given, std::string_view wanted) {
  Fail(InvalidArgument("{}: {}={} must be {}", where_, name, Excerpt(given), wanted));
}

}  // namespace edl
