#include "ps/declaration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::ps {
namespace {

using ::testing::HasSubstr;

TEST(Declaration, GivesAdamWTheWeightDecayOfKeras) {
  EXPECT_EQ(ParseOptimizer(R"({"name": "AdamW"})")->weight_decay, 0.004F);
  EXPECT_EQ(ParseOptimizer(R"({"name": "AdamW", "weight_decay": 0})")->weight_decay, 0.0F);
  EXPECT_EQ(ParseOptimizer(R"({"name": "Adam"})")->weight_decay, 0.0F);
}

TEST(Declaration, RejectsDeepNesting) {
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  const auto refused = ParseDeclaration(R"({"tables": [{"name": )" + deep + "}]}");
  EXPECT_THAT(refused, StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(refused.status().message(), HasSubstr("levels deep"));
  EXPECT_LT(refused.status().message().size(), 1000U);
}

TEST(Declaration, RejectsANameOfAMegabyte) {
  const auto refused = ParseDeclaration(R"({"tables": [{"name": ")" + std::string(1 << 20, 'x') +
                                        R"(", "dim": 1}]})");
  EXPECT_THAT(refused, StatusIs(Code::kInvalidArgument));
  EXPECT_LT(refused.status().message().size(), 1000U);
}

TEST(Declaration, HasTheDefaultsOfKeras) {
  const auto read = ParseDeclaration(R"({"seed": 7,
    "tables": [{"name": "users", "dim": 16, "optimizer": {"name": "Adagrad", "epsilon": 0.5}},
               {"name": "items", "dim": 1, "initializer": {"name": "constant", "value": 2}}],
    "tensors": [{"name": "kernel", "size": 40000, "optimizer": {"name": "Adam"}},
                {"name": "moving_mean", "size": 3}]})");
  ASSERT_OK(read);

  ASSERT_EQ(read->tables.size(), 2U);
  const TableSpec& users = read->tables[0];
  EXPECT_EQ(users.dim, 16U);
  EXPECT_EQ(users.initializer, Initializer::Uniform(-0.05F, 0.05F));
  EXPECT_EQ(users.optimizer, (OptimizerOptions{.name = "Adagrad", .epsilon = 0.5F}));
  EXPECT_EQ(users.seed, SeedOf(7, "users"));
  EXPECT_EQ(read->tables[1].initializer, Initializer::Constant(2));
  EXPECT_EQ(read->tables[1].optimizer, OptimizerOptions{});
  ASSERT_EQ(read->tensors.size(), 2U);
  EXPECT_EQ(read->tensors[0].size, 40000U);
  EXPECT_EQ(read->tensors[0].optimizer, OptimizerOptions{.name = "Adam"});
  EXPECT_EQ(read->tensors[1].optimizer, std::nullopt);
}

TEST(Declaration, IsReadAsItWasWritten) {
  Declaration declaration;
  for (const Initializer initializer :
       {Initializer::Constant(0.1F), Initializer::Uniform(-0.3F, 0.7F),
        Initializer::Normal(1, 1e-6F), Initializer::GlorotNormal(3, 5)}) {
    declaration.tables.push_back(
        {.name = fmt::format("t{}", declaration.tables.size()),
         .dim = 3,
         .initializer = initializer,
         .optimizer = {.name = "Ftrl", .nesterov = true, .epsilon = 1e-9F, .beta_1 = 0.1},
         .seed = 0xFFFFFFFFFFFFFFF1,
         .most_bytes = 1'000'000,
         .evict_after = 7,
         .admit_after = 3});
  }
  declaration.tensors = {{.name = "d", .size = 7, .optimizer = OptimizerOptions{}},
                         {.name = "e", .size = 1, .optimizer = std::nullopt}};
  const auto read = ParseDeclaration(ToText(declaration));
  ASSERT_OK(read);
  EXPECT_EQ(read->tables, declaration.tables);
  EXPECT_EQ(read->tensors, declaration.tensors);
}

struct Bad {
  const char* text;
  const char* message;
};

class InvalidDeclaration : public testing::TestWithParam<Bad> {};

TEST_P(InvalidDeclaration, IsRejectedWithTheFieldInTheMessage) {
  const auto read = ParseDeclaration(GetParam().text);
  EXPECT_THAT(read, StatusIs(Code::kInvalidArgument, HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    All, InvalidDeclaration,
    testing::Values(
        Bad{"{", "the declaration: not JSON"}, Bad{"[]", "the declaration: expected a JSON object"},
        Bad{R"({"table": []})",
            "unknown field 'table'; expected one of consistency, seed, tables, tensors"},
        Bad{R"({"tables": 1})", "tables: expected a list, found number"},
        Bad{R"({"tables": [{"dim": 1}]})", "tables[0] has no name"},
        Bad{R"({"tables": [{"name": "t"}]})", "tables[0] 't' has no dim"},
        Bad{R"({"tables": [{"name": "t", "dim": 0}]})", "dim=0 must be a whole number in 1.."},
        Bad{R"({"tables": [{"name": "t", "dim": -1}]})", "dim=-1 must be"},
        Bad{R"({"tables": [{"name": "t", "dim": 1}, {"name": "t", "dim": 1}]})", "'t' twice"},
        Bad{R"({"tables": [{"name": "t", "dim": 1, "initializer": {"name": "x"}}]})",
            "unknown initializer 'x'"},
        Bad{R"({"tables": [{"name": "t", "dim": 1, "initializer": {"value": 1}}]})",
            "unknown field 'value'; expected one of maxval, minval, name"},
        Bad{R"({"tables": [{"name": "t", "dim": 1, "optimizer": {"epsilon": "1"}}]})",
            R"(tables[0] 't', its optimizer: epsilon="1" must be a number)"},
        Bad{R"({"tables": [{"name": "t", "dim": 1, "optimizer": {"epsilon": 1e99}}]})",
            "that a float can hold"},
        Bad{R"({"tensors": [{"name": "k", "size": 1.5}]})", "size=1.5 must be"}));

}  // namespace
}  // namespace edl::ps
