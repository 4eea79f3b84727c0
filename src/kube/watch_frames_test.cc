#include "kube/watch_frames.h"

#include <string>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::kube {
namespace {

using Kind = WatchEvent::Kind;

const std::string kTwoEvents =
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"
    "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"b\\n\"}}}\r\n";

TEST(WatchFrames, AreTheSameHoweverTheBytesAreSplit) {
  for (size_t size = 1; size <= kTwoEvents.size(); ++size) {
    WatchFrames frames;
    std::vector<WatchEvent> all;
    for (size_t at = 0; at < kTwoEvents.size(); at += size) {
      auto events = frames.Feed(std::string_view(kTwoEvents).substr(at, size));
      ASSERT_OK(events);
      all.insert(all.end(), events->begin(), events->end());
    }
    ASSERT_EQ(all.size(), 2U) << size;
    EXPECT_EQ(all[0].kind, Kind::kAdded);
    EXPECT_EQ(all[0].object["metadata"]["name"], "a");
    EXPECT_EQ(all[1].kind, Kind::kDeleted);
    EXPECT_EQ(all[1].object["metadata"]["name"], "b\n");
  }
}

TEST(WatchFrames, KnowBookmarksAndErrors) {
  WatchFrames frames;
  const auto events = frames.Feed(
      "{\"type\":\"BOOKMARK\",\"object\":{}}\n\n{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n");
  ASSERT_OK(events);
  ASSERT_EQ(events->size(), 2U);
  EXPECT_EQ((*events)[0].kind, Kind::kBookmark);
  EXPECT_EQ((*events)[1].kind, Kind::kError);
}

TEST(WatchFrames, KeepWhatIsNotCompleteYet) {
  WatchFrames frames;
  EXPECT_TRUE(frames.Feed(R"({"type":"MODIFIED",)")->empty());
  EXPECT_EQ(frames.Feed("\"object\":{}}\n")->size(), 1U);
}

TEST(WatchFrames, AcceptAnObjectThatIsNestedDeeply) {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  const auto events = WatchFrames().Feed(
      R"({"type":"ADDED","object":{"metadata":{"name":"a"},"spec":)" + deep + "}}\n" + kTwoEvents);
  ASSERT_OK(events);
  ASSERT_EQ(events->size(), 3U);
  EXPECT_EQ((*events)[0].object["metadata"]["name"], "a");
}

TEST(WatchFrames, RefuseWhatIsNoEvent) {
  for (const char* text :
       {"<html>\n", "[]\n", "{}\n", "{\"type\":\"ADDED\"}\n", "{\"type\":1,\"object\":{}}\n",
        "{\"type\":\"ADDED\",\"object\":[]}\n", "{\"type\":\"RENAMED\",\"object\":{}}\n"}) {
    EXPECT_THAT(WatchFrames().Feed(text), StatusIs(Code::kDataLoss)) << text;
  }
}

TEST(WatchFrames, RefuseAnEventWithoutEnd) {
  WatchFrames frames;
  const std::string much(size_t{1} << 20, 'x');
  Status status;
  for (size_t sent = 0; sent <= WatchFrames::kMaxEventBytes && status.ok(); sent += much.size()) {
    status = frames.Feed(much).status();
  }
  EXPECT_THAT(status, StatusIs(Code::kDataLoss));
}

}  // namespace
}  // namespace edl::kube
