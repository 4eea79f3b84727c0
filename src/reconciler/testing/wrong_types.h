#pragma once

#include <cstdint>
#include <functional>

#include <nlohmann/json.hpp>

namespace edl::reconciler {

// Calls `check` for each value inside of `object` and for each type, while the value is replaced by
// one of this type. Returns the number of calls.
inline int ForEachWrongType(nlohmann::json& object, const std::function<void()>& check) {
  using nlohmann::json;
  int calls = 0;
  const std::function<void(json&)> visit = [&](json& at) {
    if (!at.is_structured()) return;
    for (json& inner : at) {
      const json saved = inner;
      for (const json& other :
           {json(), json(true), json(-1), json(1.5), json("text"), json(INT64_MIN),
            json(UINT64_MAX), json::array({1, "a", nullptr}), json({{"a", "b"}})}) {
        inner = other;
        ++calls;
        check();
      }
      inner = saved;
      visit(inner);
    }
  };
  visit(object);
  return calls;
}

}  // namespace edl::reconciler
