#include "backend/kubernetes/yaml.h"

#include <gtest/gtest.h>

namespace edl::backend::kubernetes {
namespace {

TEST(ToYaml, KeepsTextTextAndNumbersNumbers) {
  EXPECT_EQ(ToYaml({{"name", "iris"},
                    {"index", "0"},
                    {"port", 2222},
                    {"on", true},
                    {"empty", nlohmann::json::object()},
                    {"list", {"a", {{"b", nullptr}}}}}),
            "empty: {}\n"
            "index: \"0\"\n"
            "list:\n"
            "  - \"a\"\n"
            "  - b: ~\n"
            "name: \"iris\"\n"
            "on: true\n"
            "port: 2222\n");
}

}  // namespace
}  // namespace edl::backend::kubernetes
