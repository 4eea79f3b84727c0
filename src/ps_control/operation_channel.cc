#include "ps_control/operation_channel.h"

#include <utility>

namespace edl::ps_control {

using ps_client::LaneAnswer;
using ps_client::LinkOptions;
using ps_client::Question;

OperationChannel::OperationChannel(TaskThread& thread, LinkTo link_to, Post post,
                                   const Clock& clock)
    : thread_(thread), link_to_(std::move(link_to)), post_(std::move(post)), clock_(clock) {}

OperationChannel::Stop OperationChannel::CurrentStop() {
  const MutexLock lock(mutex_);
  return stop_;
}

void OperationChannel::Reset() {
  const MutexLock lock(mutex_);
  *stop_ = true;
  stop_ = std::make_shared<std::atomic<bool>>(false);
}

void OperationChannel::Hello(int server, Duration timeout, OnWelcome done) {
  thread_.Run([link_to = link_to_, post = post_, &clock = clock_, server, timeout,
               done = std::move(done), stop = CurrentStop()] {
    const auto ask = [&]() -> Result<wire::Welcome> {
      EDL_ASSIGN_OR_RETURN(const LinkOptions to, link_to(server));
      return ps_client::AskWho(to, {.timeout = timeout, .stop = stop.get()}, clock);
    };
    post([done, welcome = ask()] { done(welcome); });
  });
}

void OperationChannel::Ask(wire::MessageType type, std::vector<ServerMessage> messages,
                           std::optional<Duration> timeout, OnAnswers done) {
  thread_.Run([link_to = link_to_, post = post_, &clock = clock_, type,
               messages = std::move(messages), timeout, done = std::move(done),
               stop = CurrentStop()] {
    const auto ask = [&]() -> Result<std::vector<LaneAnswer>> {
      std::vector<Question> questions;
      for (const ServerMessage& message : messages) {
        EDL_ASSIGN_OR_RETURN(const LinkOptions to, link_to(message.server));
        const std::vector<LinkOptions> lanes = ps_client::LanesOf(to, message.welcome);
        for (size_t lane = 0; lane < lanes.size(); ++lane) {
          questions.push_back({.to = lanes[lane], .meta = message.metas.at(lane)});
        }
      }
      return ps_client::Ask(type, questions, {.timeout = timeout, .stop = stop.get()}, clock);
    };
    post([done, answers = ask()] { done(answers); });
  });
}

}  // namespace edl::ps_control
