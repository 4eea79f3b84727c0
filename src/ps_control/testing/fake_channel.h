#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ps_control/server_channel.h"

namespace edl::ps_control {

// Records requests, which the test answers one by one. Confined.
class FakeChannel final : public ServerChannel {
 public:
  struct LinkRequest {
    wire::MessageType type = wire::MessageType::kHello;
    int server = 0;                       // Hello
    std::vector<ServerMessage> messages;  // Ask
    std::optional<Duration> timeout;
    OnWelcome on_welcome;
    OnAnswers on_answers;
  };

  void Hello(int server, Duration timeout, OnWelcome done) override {
    requests_.push_back({.server = server, .timeout = timeout, .on_welcome = std::move(done)});
  }
  void Ask(wire::MessageType type, std::vector<ServerMessage> messages,
           std::optional<Duration> timeout, OnAnswers done) override {
    requests_.push_back({.type = type,
                         .messages = std::move(messages),
                         .timeout = timeout,
                         .on_answers = std::move(done)});
  }
  // As a real channel: the request under way fails later, unless it is answered before that.
  void Reset() override { ++resets_; }

  int resets() const { return resets_; }
  // The requests that have no answer yet.
  const std::deque<LinkRequest>& requests() const { return requests_; }
  // The type of the oldest one; none: there is no request.
  std::optional<wire::MessageType> pending() const {
    if (requests_.empty()) return std::nullopt;
    return requests_.front().type;
  }
  LinkRequest Take() {
    LinkRequest request = std::move(requests_.front());
    requests_.pop_front();
    return request;
  }

  // These answer the oldest request.
  void AnswerHello(const Result<wire::Welcome>& welcome) { Take().on_welcome(welcome); }
  // Answers for all lanes: each with `meta`, given by `incarnation`.
  void AnswerAll(const std::string& meta, job::PsIncarnation incarnation) {
    const LinkRequest request = Take();
    std::vector<ps_client::LaneAnswer> answers;
    for (const ServerMessage& message : request.messages) {
      for (size_t i = 0; i < message.metas.size(); ++i) answers.push_back({meta, incarnation});
    }
    request.on_answers(answers);
  }
  void Answer(const Result<std::vector<ps_client::LaneAnswer>>& answers) {
    Take().on_answers(answers);
  }

 private:
  std::deque<LinkRequest> requests_;
  int resets_ = 0;
};

}  // namespace edl::ps_control
