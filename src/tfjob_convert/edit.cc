#include "tfjob_convert/edit.h"

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"

namespace edl::tfjob_convert {
namespace {

constexpr size_t kLongestShown = 60;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

Json* Find(Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(std::string(key));
  return found == object.end() ? nullptr : &*found;
}

const Json* Find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(std::string(key));
  return found == object.end() ? nullptr : &*found;
}

std::string TextOf(const Json& object, std::string_view key) {
  const Json* found = Find(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

bool Has(const Json& object, std::string_view key) {
  const Json* found = Find(object, key);
  return found != nullptr && !found->is_null();
}

void Rename(Json& object, std::string_view from, std::string_view to) {
  Json renamed = Json::object();
  auto& entries = renamed.get_ref<Json::object_t&>();
  for (auto& [key, value] : object.get_ref<Json::object_t&>()) {
    entries.emplace_back(key == from ? std::string(to) : key, std::move(value));
  }
  object = std::move(renamed);
}

void AddFirst(Json& object, std::string_view key, Json value) {
  Json extended = Json::object();
  auto& entries = extended.get_ref<Json::object_t&>();
  entries.emplace_back(std::string(key), std::move(value));
  for (auto& [old_key, old_value] : object.get_ref<Json::object_t&>()) {
    entries.emplace_back(old_key, std::move(old_value));
  }
  object = std::move(extended);
}

Json Take(Json& object, std::string_view key) {
  Json* found = Find(object, key);
  CHECK(found != nullptr, "there is no {}", key);
  Json value = std::move(*found);
  object.erase(std::string(key));
  return value;
}

std::string Shown(const Json& value) {
  if (value.is_string()) return OneLine(value.get<std::string>(), kLongestShown);
  return OneLine(Dump(value), kLongestShown);
}

bool SameLetters(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return Lower(x) == Lower(y); });
}

}  // namespace edl::tfjob_convert
