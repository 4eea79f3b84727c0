#include "backend/local/agent_protocol.h"

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::backend::local {
namespace {

Result<Request> Parse(std::string_view line) {
  uint64_t id = 0;
  return ParseRequest(line, &id);
}

TEST(AgentProtocol, CarriesALaunchUnchanged) {
  Request request{.id = 7, .op = Op::kLaunch};
  request.spec = {.name = "iris-edljob-ps-1",
                  .role = job::Role::kPs,
                  .index = 1,
                  .id = 1,
                  .command = {"python", "-c", "print(\"\n'é'\")"},
                  .env = {{"TF_CONFIG", R"({"task": {"index": 1}})"}, {"EMPTY", ""}},
                  .memory_limit_bytes = int64_t{5} << 30};

  const Result<std::string> line = Encode(request);
  ASSERT_OK(line);
  const Result<Request> read = Parse(*line);

  ASSERT_OK(read);
  EXPECT_EQ(read->id, 7);
  EXPECT_EQ(read->spec.name, request.spec.name);
  EXPECT_EQ(read->spec.role, job::Role::kPs);
  EXPECT_EQ(read->spec.command, request.spec.command);
  EXPECT_EQ(read->spec.env, request.spec.env);
  EXPECT_EQ(read->spec.memory_limit_bytes, request.spec.memory_limit_bytes);
  EXPECT_EQ(line->find('\n'), line->size() - 1) << "one line";
}

TEST(AgentProtocol, RefusesWhatJsonCannotCarry) {
  Request request{.op = Op::kLaunch};
  request.spec = {.name = "iris-edljob-ps-1", .env = {{"BYTES", "\xff\xfe"}}};

  EXPECT_THAT(Encode(request), StatusIs(Code::kInvalidArgument));
}

TEST(AgentProtocol, CarriesAnExitUnchanged) {
  const Message message{.kind = Message::Kind::kEvent,
                        .id = 3,
                        .event = {.name = "iris-edljob-worker-0",
                                  .kind = job::ReplicaEvent::Kind::kExited,
                                  .cause = {.kind = job::ExitCause::Kind::kOutOfMemory,
                                            .signal = 9,
                                            .message = "out of memory"}}};

  const Result<Message> read = ParseMessage(Encode(message));

  ASSERT_OK(read);
  EXPECT_EQ(read->id, 3);
  EXPECT_EQ(read->event.name, message.event.name);
  EXPECT_EQ(read->event.cause.kind, job::ExitCause::Kind::kOutOfMemory);
  EXPECT_EQ(read->event.cause.signal, 9);
  EXPECT_EQ(read->event.cause.message, "out of memory");
}

TEST(AgentProtocol, RejectsInvalidTextWithAReason) {
  for (const char* line :
       {"",
        "{",
        "[]",
        "null",
        "7",
        "\xff\xff",
        R"({"id":-1,"op":"watch"})",
        R"({"id":1})",
        R"({"id":1,"op":"dance"})",
        R"({"id":1,"op":["watch"]})",
        R"({"id":"1","op":"watch"})",
        R"({"id":18446744073709551615,"op":"watch"})",
        R"({"id":1,"op":"launch"})",
        R"({"id":1,"op":"launch","spec":[]})",
        R"({"id":1,"op":"launch","spec":{"name":3,"role":"worker","env":{}}})",
        R"({"id":1,"op":"launch","spec":{"name":"a","role":"cook","env":{}}})",
        R"({"id":1,"op":"launch","spec":{"name":"a","role":"ps","env":{},"command":[1]}})",
        R"({"id":1,"op":"launch","spec":{"name":"a","role":"ps","env":{"A":1}}})",
        R"({"id":1,"op":"address","role":"ps","index":-1})",
        R"({"id":1,"op":"stop","name":"a","grace_ms":-5})"}) {
    const Result<Request> request = Parse(line);
    EXPECT_THAT(request, StatusIs(Code::kInvalidArgument)) << line;
    EXPECT_FALSE(request.status().message().empty()) << line;
  }
}

TEST(AgentProtocol, SurvivesDeepNesting) {
  EXPECT_FALSE(Parse(std::string(1'000'000, '[')).ok());
  EXPECT_FALSE(
      Parse(R"({"id":1,"op":)" + std::string(500'000, '[') + std::string(500'000, ']') + "}").ok());
}

TEST(LineReader, CutsLinesHoweverTheyArrive) {
  LineReader reader;
  ASSERT_EQ(reader.Append("on"), Ok());
  EXPECT_EQ(reader.NextLine(), std::nullopt);
  ASSERT_EQ(reader.Append("e\ntwo\nth"), Ok());
  EXPECT_EQ(reader.NextLine(), "one");
  EXPECT_EQ(reader.NextLine(), "two");
  EXPECT_EQ(reader.NextLine(), std::nullopt);
  ASSERT_EQ(reader.Append("ree\n"), Ok());
  EXPECT_EQ(reader.NextLine(), "three");
}

TEST(LineReader, RefusesALineWithoutEnd) {
  LineReader reader;
  Status status;
  for (size_t sent = 0; status.ok() && sent < 2 * LineReader::kLongestLine; sent += 1 << 16) {
    status = reader.Append(std::string(1 << 16, 'x'));
    EXPECT_EQ(reader.NextLine(), std::nullopt);
  }

  EXPECT_THAT(status, StatusIs(Code::kInvalidArgument));
}

}  // namespace
}  // namespace edl::backend::local
