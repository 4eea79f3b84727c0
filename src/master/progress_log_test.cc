#include "master/progress_log.h"

#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace edl::master {
namespace {

constexpr const char* kChiefLog = "iris-edljob-chief-0";
constexpr const char* kEvaluatorLog = "iris-edljob-evaluator-0";

TEST(ProgressLog, ReadsTheLastSavedAndTheLastEvaluatedCheckpoint) {
  ProgressLog log;

  EXPECT_TRUE(
      log.Feed(kChiefLog, "INFO:tensorflow:Saving checkpoints for 470 into /tmp/model.ckpt.\n"));
  EXPECT_TRUE(log.Feed(kEvaluatorLog,
                       "INFO:tensorflow:Saving dict for global step 470: accuracy = 0.96, "
                       "global_step = 470, loss = 0.1\n"));

  EXPECT_EQ(log.checkpoint_step(), 470);
  EXPECT_EQ(log.evaluated_step(), 470);
  EXPECT_EQ(log.evaluation(), "accuracy = 0.96, global_step = 470, loss = 0.1 (global step 470)");
}

TEST(ProgressLog, TellsWhatEachLineSaysOnce) {
  ProgressLog log;
  log.Feed(kChiefLog,
           "INFO:tensorflow:loss = 2.5, step = 100\n"
           "noise\n"
           "INFO:tensorflow:global_step/sec: 50\n");
  log.Feed(kEvaluatorLog,
           "INFO:tensorflow:Saving dict for global step 100: accuracy = 0.5, global_step = 100, "
           "loss = nan\n");

  const auto logged = log.TakeLogged();

  ASSERT_EQ(logged.size(), 3);
  EXPECT_EQ(logged[0].step, 100);
  EXPECT_EQ(logged[0].values, (std::map<std::string, double>{{"loss", 2.5}}));
  EXPECT_EQ(logged[1].step, -1);
  EXPECT_EQ(logged[1].values, (std::map<std::string, double>{{"steps_per_s", 50}}));
  EXPECT_TRUE(logged[2].evaluation);
  EXPECT_EQ(logged[2].step, 100);
  EXPECT_EQ(logged[2].values.at("accuracy"), 0.5);
  EXPECT_TRUE(std::isnan(logged[2].values.at("loss")));
  EXPECT_EQ(logged[2].values.size(), 2) << "not the step";
  EXPECT_TRUE(log.TakeLogged().empty());
}

TEST(ProgressLog, KnowsHowLongTheEvaluatorWaits) {
  ProgressLog log;
  EXPECT_EQ(log.evaluator_waits(), 0);

  log.Feed(kEvaluatorLog, "INFO:tensorflow:Waiting 120.000000 secs before starting eval.\n");
  EXPECT_EQ(log.evaluator_wait_secs(), 120);
  log.Feed(kEvaluatorLog,
           "INFO:tensorflow:Waiting 592.5 secs before starting next eval run.\n"
           "INFO:tensorflow:Waiting nan secs before starting next eval run.\n");

  EXPECT_EQ(log.evaluator_waits(), 2);
  EXPECT_EQ(log.evaluator_wait_secs(), 592.5);
}

TEST(ProgressLog, ReadsLinesThatWereSplitAnywhere) {
  constexpr std::string_view kText = "noise\nSaving checkpoints for 12345 into x\nmore noise\n";

  for (size_t cut = 0; cut <= kText.size(); ++cut) {
    ProgressLog log;
    log.Feed(kChiefLog, kText.substr(0, cut));
    log.Feed(kChiefLog, kText.substr(cut));
    EXPECT_EQ(log.checkpoint_step(), 12345) << "cut at " << cut;
  }
}

TEST(ProgressLog, DoesNotReadALineBeforeItsEnd) {
  ProgressLog log;

  EXPECT_FALSE(log.Feed(kChiefLog, "Saving checkpoints for 12"));

  EXPECT_EQ(log.checkpoint_step(), -1);
}

TEST(ProgressLog, KeepsThePiecesOfReplicasApart) {
  ProgressLog log;
  log.Feed(kChiefLog, "Saving checkpoints ");
  log.Feed(kEvaluatorLog, "for 7 into x\n");
  log.Feed(kChiefLog, "for 9 into x\n");

  EXPECT_EQ(log.checkpoint_step(), 9);
}

TEST(ProgressLog, NeverGoesBack) {
  ProgressLog log;
  log.Feed(kChiefLog, "Saving checkpoints for 100 into x\nSaving checkpoints for 50 into x\n");

  EXPECT_EQ(log.checkpoint_step(), 100);
}

TEST(ProgressLog, ShowsLossStepAndSpeed) {
  ProgressLog log;
  log.Feed(kChiefLog,
           "INFO:tensorflow:loss = 0.25, step = 300 (0.5 sec)\n"
           "INFO:tensorflow:global_step/sec: 120.5\n");

  EXPECT_DOUBLE_EQ(log.metrics().at("loss"), 0.25);
  EXPECT_DOUBLE_EQ(log.metrics().at("step"), 300);
  EXPECT_DOUBLE_EQ(log.metrics().at("steps_per_s"), 120.5);
}

TEST(ProgressLog, IgnoresMalformedLines) {
  ProgressLog log;
  std::string garbage(1, '\0');
  garbage += "\xff\x1b[31m\n\n\r\nSaving checkpoints for \n";
  garbage += "Saving checkpoints for many\nSaving dict for global step : x\n";
  garbage += "Saving checkpoints for 99999999999999999999999999\nloss = 1, step = 2\n";
  garbage += "INFO:tensorflow:loss = broken\n";

  EXPECT_FALSE(log.Feed(kChiefLog, garbage));

  EXPECT_EQ(log.checkpoint_step(), -1);
  EXPECT_EQ(log.evaluated_step(), -1);
  EXPECT_TRUE(log.metrics().empty());
}

TEST(ProgressLog, GoesOnAfterALineWithoutEnd) {
  ProgressLog log;
  for (int i = 0; i < 100; ++i) log.Feed(kChiefLog, std::string(10'000, 'x'));
  log.Feed(kChiefLog, "\nSaving checkpoints for 5 into x\n");

  EXPECT_EQ(log.checkpoint_step(), 5);
}

}  // namespace
}  // namespace edl::master
