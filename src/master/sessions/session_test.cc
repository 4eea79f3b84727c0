#include "master/sessions/session.h"

#include <string>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

Session WithAnswers() {
  Session session{.incarnation = Incarnation(5)};
  session.received = 7;
  session.ended = true;
  session.answers[8] = {.complete = true,
                        .answer = LeaseAnswer::kShards,
                        .leases = {LeaseId(40), LeaseId(18446744073709551615u)},
                        .verdicts = {ReportVerdict::kAccepted, ReportVerdict::kLost}};
  session.answers[9] = {.complete = false, .verdicts = {ReportVerdict::kLost}};
  session.answers[10] = {.complete = true, .answer = LeaseAnswer::kFinished};
  return session;
}

TEST(StoredAnswers, SurviveTheLedger) {
  const std::string text = EncodeAnswers(WithAnswers());

  Session read{.incarnation = Incarnation(5)};
  ASSERT_EQ(DecodeAnswers(text, read), Ok());

  EXPECT_EQ(EncodeAnswers(read), text);
  EXPECT_EQ(read.received, 7u);
  EXPECT_TRUE(read.ended);
  ASSERT_EQ(read.answers.size(), 3u);
  EXPECT_EQ(read.answers[8].leases, WithAnswers().answers[8].leases);
  EXPECT_EQ(read.answers[8].verdicts, WithAnswers().answers[8].verdicts);
  EXPECT_FALSE(read.answers[9].complete);
  EXPECT_EQ(read.answers[10].answer, LeaseAnswer::kFinished);
}

TEST(StoredAnswers, AreRefusedWhenDamagedAnywhere) {
  const std::string text = EncodeAnswers(WithAnswers());

  for (const std::string& damaged :
       {std::string(), std::string("x"), std::string("7;1;8:1:99:0,0,"),
        std::string("7;1;8:1:1:1000000000,1,"), text.substr(0, text.size() - 1)}) {
    Session read{.incarnation = Incarnation(5)};
    const Status status = DecodeAnswers(damaged, read);
    EXPECT_THAT(status, StatusIs(Code::kDataLoss)) << damaged;
    EXPECT_NE(status.message().find('5'), std::string::npos) << status;
  }
}

TEST(Sessions, ForgetAnswersThatArrived) {
  Ledger ledger = *Ledger::Open(":memory:");
  Sessions sessions(ledger);
  Session& session = sessions.Open(Worker(0), "host:1", Time());
  for (const uint64_t number : {1, 2, 3}) sessions.StoreAnswer(session, number, {});

  sessions.Received(session, 2);
  sessions.Received(session, 1);  // an old call that arrives late

  EXPECT_EQ(session.answers.size(), 1u);
  EXPECT_EQ(session.received, 2u);
}

TEST(Sessions, AreReadBackWithTheirApiAndReplica) {
  Ledger ledger = *Ledger::Open(":memory:");
  Sessions sessions(ledger);
  const Incarnation ours = sessions.Open(Worker(3), "host:1", Time()).incarnation;
  const Incarnation old = sessions.OpenCompat(Chief(), Time()).incarnation;
  const Incarnation closed = sessions.Open(Worker(4), "host:2", Time()).incarnation;
  sessions.Close(closed);
  sessions.Flush();

  Sessions loaded(ledger);
  ASSERT_EQ(loaded.Load(sessions.next_incarnation(), Time()), Ok());

  EXPECT_EQ(loaded.all().size(), 2u);
  EXPECT_EQ(loaded.Find(ours)->process, "host:1");
  EXPECT_EQ(loaded.Find(closed), nullptr);
  ASSERT_NE(loaded.FindCompat(Chief()), nullptr);
  EXPECT_EQ(loaded.FindCompat(Chief())->incarnation, old);
  EXPECT_EQ(loaded.FindCompat(Worker(3)), nullptr);
  EXPECT_EQ(loaded.Of(Worker(3)), (std::vector<Incarnation>{ours}));
}

}  // namespace
}  // namespace edl::master
