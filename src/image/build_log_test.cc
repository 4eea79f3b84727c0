#include "image/build_log.h"

#include <gtest/gtest.h>

namespace edl::image {
namespace {

BuildLog Read(std::string_view text) {
  BuildLog log;
  for (; !text.empty(); text.remove_prefix(std::min<size_t>(3, text.size()))) {
    log.Append(text.substr(0, 3));
  }
  return log;
}

TEST(BuildLog, FindsTheStepThatFailedInBuildah) {
  const BuildLog log = Read(
      "STEP 1/3: FROM python:3.11\n"
      "Resolved \"python\" as an alias\n"
      "STEP 2/3: COPY requirements.txt /tmp/\n"
      "--> 12ab\n"
      "STEP 3/3: RUN pip install -r /tmp/requirements.txt\n"
      "ERROR: Could not find a version that satisfies the requirement none\n"
      "ERROR: No matching distribution found for none\n"
      "Error: building at STEP \"RUN pip install -r /tmp/requirements.txt\": while running "
      "runtime: exit status 1\n");
  EXPECT_EQ(log.step(), "step 3/3, RUN pip install -r /tmp/requirements.txt");
  EXPECT_EQ(log.reason(), "No matching distribution found for none");
}

TEST(BuildLog, UsesTheBuildersErrorIfTheStepPrintedNone) {
  EXPECT_EQ(Read("STEP 1/1: RUN x\nError: building at STEP \"RUN x\": while running runtime: exit "
                 "status 7\n")
                .reason(),
            "while running runtime: exit status 7");
}

TEST(BuildLog, IgnoresErrorsOfStepsThatSucceeded) {
  const BuildLog log = Read("STEP 1/2: RUN try\nERROR: tried\nSTEP 2/2: RUN fail\nsaid little\n\n");
  EXPECT_EQ(log.reason(), "said little");
  EXPECT_EQ(log.step(), "step 2/2, RUN fail");
}

TEST(BuildLog, ReadsBothFormatsOfDocker) {
  BuildLog log = Read("Step 2/5 : RUN false\nThe command returned a non-zero code: 1\n");
  EXPECT_EQ(log.step(), "step 2/5, RUN false");
  log = Read(
      "#1 [internal] load build definition\n"
      "#7 [stage-0 2/4] RUN false\n"
      "#8 [3/4] COPY a b\n"
      "#7 ERROR: process \"/bin/sh -c false\" did not complete successfully: exit code: 1\n");
  EXPECT_EQ(log.step(), "step 2/4, RUN false");
  EXPECT_EQ(log.reason(),
            "process \"/bin/sh -c false\" did not complete successfully: exit code: 1");
}

TEST(BuildLog, ReadsAPush) {
  const BuildLog log = Read(
      "Getting image source signatures\n"
      "Error: pushing image \"a\": unauthorized: authentication required\n");
  EXPECT_EQ(log.step(), "");
  EXPECT_EQ(log.reason(), "pushing image \"a\": unauthorized: authentication required");
}

TEST(BuildLog, AcceptsAnyText) {
  EXPECT_EQ(Read("STEP\nSTEP x\nSTEP : \n#\n# [\n#1 [a\n\n\r\n").step(), "");
  EXPECT_EQ(Read(std::string(1 << 20, 'x') + "\nSTEP 1/1: y\n").step(), "step 1/1, y");
}

}  // namespace
}  // namespace edl::image
