#include "job/json.h"

#include <set>
#include <vector>

namespace edl::job {

using nlohmann::json;

Result<json> ParseJson(std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string twice;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && twice.empty()) twice = key;
    }
    return true;
  };
  try {
    json value = json::parse(text, watch);
    if (!twice.empty()) return InvalidArgument("'{}' is there twice", twice);
    return value;
  } catch (const json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 3: ..."
    const std::string what = error.what();
    const size_t bracket = what.find("] ");
    return InvalidArgument("not JSON: {}",
                           bracket == std::string::npos ? what : what.substr(bracket + 2));
  }
}

Result<std::string> ScalarText(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  return InvalidArgument("{} is not a text, a number or a boolean",
                         value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80));
}

}  // namespace edl::job
