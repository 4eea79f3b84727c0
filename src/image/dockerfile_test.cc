#include "image/dockerfile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::image {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ZooRecipe Recipe() {
  return {.base_image = "python:3.11-bookworm", .model_zoo = "model_zoo", .version = "2.0.0"};
}

TEST(ZooDockerfile, IsReadable) {
  ZooRecipe recipe = Recipe();
  recipe.has_requirements = true;
  EXPECT_EQ(ZooDockerfile(recipe),
            R"(# An image with the models of a job, for every role: master, worker, ps, chief and
# evaluator. Written by elasticdl 2.0.0 zoo init; you may edit it. Build and push it with
#   elasticdl zoo build --image=NAME .
#   elasticdl zoo push NAME
FROM python:3.11-bookworm

# Python then checks compiled files by content, not by time, so that equal files make equal
# layers.
ARG SOURCE_DATE_EPOCH=315532800

# Packages that the models import; this layer is rebuilt only when the file changes.
COPY model_zoo/requirements.txt /tmp/requirements.txt
RUN pip install --no-cache-dir -r /tmp/requirements.txt

# ElasticDL: the binary (also the master) and the packages that training programs import.
RUN pip install --no-cache-dir \
    elasticai_api==2.0.0 \
    elasticdl==2.0.0 \
    elasticdl_api==2.0.0 \
    elasticdl_client==2.0.0 \
    elasticdl_preprocessing==2.0.0

# The models change most, so they come last.
COPY model_zoo /model_zoo
WORKDIR /
)");
}

TEST(ZooDockerfile, SupportsEveryOption) {
  ZooRecipe recipe = Recipe();
  recipe.model_zoo = ".";
  recipe.has_requirements = true;
  recipe.extra_pypi_index = "https://example.org/simple";
  recipe.wheels = "build";
  recipe.cluster_spec = "specs/spec.py";
  recipe.user = "1000:1000";
  const std::string text = ZooDockerfile(recipe);
  EXPECT_THAT(text, HasSubstr("COPY requirements.txt /tmp/requirements.txt\n"
                              "RUN pip install --no-cache-dir "
                              "--extra-index-url=https://example.org/simple -r /tmp/req"));
  EXPECT_THAT(text, HasSubstr("COPY build/*.whl /tmp/wheels/\n"
                              "RUN pip install --no-cache-dir "
                              "--extra-index-url=https://example.org/simple "
                              "--find-links=/tmp/wheels \\\n    elasticai_api==2.0.0 "));
  EXPECT_THAT(text, HasSubstr("COPY specs/spec.py /cluster_spec/spec.py\n"));
  EXPECT_THAT(text, HasSubstr("COPY --from=models /model_zoo /model_zoo\n"
                              "WORKDIR /\nUSER 1000:1000\n"));
}

TEST(ZooDockerfile, LeavesOutOptionalParts) {
  const std::string text = ZooDockerfile(Recipe());
  EXPECT_THAT(text, Not(HasSubstr("requirements")));
  EXPECT_THAT(text, Not(HasSubstr("USER")));
}

TEST(ZooDockerfile, SupportsPathsWithSpaces) {
  ZooRecipe recipe = Recipe();
  recipe.model_zoo = "my zoo";
  EXPECT_THAT(ZooDockerfile(recipe), HasSubstr("COPY [\"my zoo\", \"/model_zoo\"]\n"));
}

TEST(LayerTime, IsReadFromTheDockerfile) {
  EXPECT_EQ(LayerTime(ZooDockerfile(Recipe())), 315532800);
  EXPECT_EQ(LayerTime("FROM x\nENV A=1 \\\n    SOURCE_DATE_EPOCH=7 \\\n    B=2\n"), 7);
  EXPECT_EQ(LayerTime("FROM x\nRUN pip install y\n"), std::nullopt);
  EXPECT_EQ(LayerTime("FROM x\n# ARG SOURCE_DATE_EPOCH=1\nARG SOURCE_DATE_EPOCH=x"), std::nullopt);
}

}  // namespace
}  // namespace edl::image
