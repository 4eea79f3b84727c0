#include "backend/event_dispatcher.h"

#include <future>
#include <string>

#include <gtest/gtest.h>

namespace edl::backend {
namespace {

using job::ReplicaEvent;

// The names of events up to "last", as a watcher is told.
class Names {
 public:
  EventDispatcher::Watcher watcher() {
    return [this](const ReplicaEvent& event) {
      names_.push_back(event.name);
      if (event.name == "last") done_.set_value();
    };
  }
  std::vector<std::string> Await() {
    const bool told =
        done_.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    EXPECT_TRUE(told) << "the event 'last' was not delivered within 30 s";
    return told ? names_ : std::vector<std::string>();
  }

 private:
  std::vector<std::string> names_;  // the dispatcher's thread writes it before done_
  std::promise<void> done_;
};

TEST(EventDispatcher, TellsWhatIsKnownFirstAndThenInOrder) {
  Names names;
  EventDispatcher dispatcher;
  dispatcher.Tell({.name = "nobody watches"});
  dispatcher.Watch(names.watcher(), {{.name = "a"}, {.name = "b"}});
  dispatcher.Tell({.name = "c"});
  dispatcher.Tell({.name = "last"});
  EXPECT_EQ(names.Await(), (std::vector<std::string>{"a", "b", "c", "last"}));
}

TEST(EventDispatcher, LetsAWatcherReplaceItself) {
  Names names;
  EventDispatcher dispatcher;
  dispatcher.Watch(
      [&](const ReplicaEvent&) { dispatcher.Watch(names.watcher(), {{.name = "last"}}); },
      {{.name = "a"}, {.name = "not told: another one watches by then"}});
  EXPECT_EQ(names.Await(), std::vector<std::string>{"last"});
}

}  // namespace
}  // namespace edl::backend
