#include "backend/event_dispatcher.h"

#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/await.h"
#include "base/testing/status_matchers.h"

namespace edl::backend {
namespace {

using job::ReplicaEvent;

// A watcher that records the names of events up to "last".
class Names {
 public:
  EventDispatcher::Watcher watcher() {
    return [this](const ReplicaEvent& event) {
      names_.push_back(event.name);
      if (event.name == "last") done_.set_value();
    };
  }
  std::vector<std::string> Await() {
    const Status delivered = AwaitReady(done_.get_future(), "the delivery of the event 'last'");
    EXPECT_OK(delivered);
    return delivered.ok() ? names_ : std::vector<std::string>();
  }

 private:
  std::vector<std::string> names_;  // the dispatcher's thread writes it before done_
  std::promise<void> done_;
};

TEST(EventDispatcher, DeliversTheFirstEventsAndThenOthersInOrder) {
  Names names;
  EventDispatcher dispatcher;
  dispatcher.Notify({.name = "nobody watches"});
  dispatcher.Watch(names.watcher(), {{.name = "a"}, {.name = "b"}});
  dispatcher.Notify({.name = "c"});
  dispatcher.Notify({.name = "last"});
  EXPECT_EQ(names.Await(), (std::vector<std::string>{"a", "b", "c", "last"}));
}

TEST(EventDispatcher, LetsAWatcherReplaceItself) {
  Names names;
  EventDispatcher dispatcher;
  dispatcher.Watch(
      [&](const ReplicaEvent&) { dispatcher.Watch(names.watcher(), {{.name = "last"}}); },
      {{.name = "a"}, {.name = "dropped: the watcher was replaced"}});
  EXPECT_EQ(names.Await(), std::vector<std::string>{"last"});
}

}  // namespace
}  // namespace edl::backend
