#include "backend/kubernetes/pod_log.h"

#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::backend::kubernetes {
namespace {

using ::testing::ElementsAre;

// The output of one container that a node keeps.
class Node {
 public:
  void Print(int second, const std::string& text) {
    lines_.push_back(fmt::format("2026-11-15T10:00:{:02}.000000000Z {}", second, text));
  }
  PodLog::Fetch Fetch() {
    return [this](const std::string& since) -> Result<std::string> {
      asked_.push_back(since);
      std::string out;
      for (const std::string& line : lines_) {
        if (line.substr(0, since.size()) >= since) out += line;
      }
      return out;
    };
  }
  const std::vector<std::string>& asked() const { return asked_; }

 private:
  std::vector<std::string> lines_;
  std::vector<std::string> asked_;
};

TEST(PodLog, ReadsOnWithoutReadingAllAgain) {
  Node node;
  PodLog log;
  node.Print(1, "one\n");
  node.Print(2, "two\n");
  EXPECT_EQ(log.Read(0, 100, node.Fetch())->text, "one\ntwo\n");

  node.Print(3, "three\n");
  const auto piece = log.Read(8, 100, node.Fetch());

  EXPECT_EQ(piece->text, "three\n");
  EXPECT_EQ(piece->next_offset, 14);
  EXPECT_THAT(node.asked(), ElementsAre("", "2026-11-15T10:00:02.000000000Z"));
}

TEST(PodLog, DistinguishesLinesOfTheSameTime) {
  Node node;
  PodLog log;
  node.Print(1, "a\n");
  node.Print(1, "b\n");
  EXPECT_EQ(log.Read(0, 100, node.Fetch())->text, "a\nb\n");
  node.Print(1, "c\n");
  node.Print(1, "d\n");
  EXPECT_EQ(log.Read(4, 100, node.Fetch())->text, "c\nd\n");
  EXPECT_EQ(log.Read(8, 100, node.Fetch())->text, "");
}

TEST(PodLog, GivesAsMuchAsIsAskedFor) {
  Node node;
  PodLog log;
  node.Print(1, "0123456789");
  EXPECT_EQ(log.Read(0, 4, node.Fetch())->text, "0123");
  EXPECT_EQ(log.Read(4, 4, node.Fetch())->text, "4567");
  const auto rest = log.Read(8, 4, node.Fetch());
  EXPECT_EQ(rest->text, "89");
  EXPECT_EQ(rest->next_offset, 10);
}

TEST(PodLog, ReadsFromAnywhere) {
  Node node;
  PodLog log;
  node.Print(1, "01234\n");
  node.Print(2, "6789\n");
  EXPECT_EQ(log.Read(-3, 100, node.Fetch())->text, "89\n");
  EXPECT_EQ(log.Read(2, 3, node.Fetch())->text, "234");
  EXPECT_EQ(log.Read(-100, 2, node.Fetch())->text, "01");
  EXPECT_EQ(log.Read(99, 100, node.Fetch())->next_offset, 11);
}

TEST(PodLog, SaysWhatTheNodeSays) {
  PodLog log;
  EXPECT_THAT(log.Read(0, 1, [](const std::string&) { return NotFound("no pod"); }),
              StatusIs(Code::kNotFound));
}

TEST(PodLog, SurvivesAnAnswerThatIsCutOff) {
  PodLog log;
  const auto piece = log.Read(0, 100, [](const std::string&) -> Result<std::string> {
    return std::string("2026-11-15T10:00:01.000000000Z a\n2026-11-15T1");
  });
  EXPECT_EQ(piece->text, "a\n");
}

}  // namespace
}  // namespace edl::backend::kubernetes
