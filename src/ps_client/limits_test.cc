// Messages that are larger than a frame may be, and more descriptors than the kernel watches.

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "ps/parameter_server.h"
#include "ps_client/parameter_client.h"
#include "wire/testing/watches.h"

namespace edl::ps_client {
namespace {

using ::testing::HasSubstr;

constexpr size_t kSize = 100'000;
constexpr wire::FrameLimits kSmall{.body_bytes = size_t{1} << 20, .meta_bytes = 4096};

// Four tensors of 400 KB, and one of 1.2 MB.
Parameters SomeParameters() {
  Parameters parameters{.text = R"({"tensors": [)"};
  for (const auto& [name, size] :
       {std::pair{"a", kSize}, {"b", kSize}, {"c", kSize}, {"d", kSize}, {"large", 3 * kSize}}) {
    parameters.text +=
        fmt::format(R"({}{{"name": "{}", "size": {}, "optimizer": {{"name": "SGD"}}}})",
                    parameters.tensors.empty() ? "" : ", ", name, size);
    parameters.tensors.push_back({.name = name, .size = size});
  }
  parameters.text += "]}";
  return parameters;
}

class LimitsTest : public testing::Test {
 protected:
  std::unique_ptr<ParameterClient> Connect(wire::FrameLimits limits) {
    auto client = ParameterClient::Connect({.servers = {{"127.0.0.1", server_->port()}},
                                            .timeout = std::chrono::seconds(60),
                                            .limits = limits},
                                           clock_);
    EXPECT_OK(client);
    EXPECT_OK((*client)->Declare(SomeParameters()));
    return *std::move(client);
  }

  const SystemClock clock_{};
  std::unique_ptr<ps::ParameterServer> server_ = std::move(*ps::ParameterServer::Start(
      {.host = "127.0.0.1", .lanes = 1, .incarnation = job::PsIncarnation(1), .limits = kSmall},
      clock_));
};

TEST_F(LimitsTest, TensorsTravelInAsManyFramesAsTheyNeed) {
  const auto client = Connect(kSmall);
  std::vector<float> values(kSize);
  std::iota(values.begin(), values.end(), 0.0F);
  std::vector<TensorValues> puts;
  std::vector<std::vector<float>> pulled(4, std::vector<float>(kSize));
  PullSpec pull;
  for (size_t tensor = 0; tensor < 4; ++tensor) {
    puts.push_back({.tensor = tensor, .values = values.data()});
    pull.tensors.push_back({.tensor = tensor, .values = pulled[tensor].data()});
  }

  const auto taken = client->Put(puts);
  ASSERT_OK(taken);
  EXPECT_EQ(*taken, 4 * wire::BlocksOf(kSize));
  ASSERT_OK(client->WaitPull(client->StartPull(pull)));
  for (const std::vector<float>& one : pulled) EXPECT_EQ(one, values);
}

TEST_F(LimitsTest, WhatIsLargerThanAFrameIsRefusedBeforeItIsSent) {
  const auto client = Connect(kSmall);
  const std::vector<float> values(3 * kSize);
  const Status put = client->Put({{.tensor = 4, .values = values.data()}}).status();
  EXPECT_THAT(put, StatusIs(Code::kResourceExhausted));
  EXPECT_THAT(put.message(), HasSubstr("1200"));
  EXPECT_THAT(put.message(), HasSubstr("more servers or lanes"));
  ASSERT_OK(client->Open(job::LeaseId(1), {})) << "and the connection goes on";
  const auto pushed = client->WaitPush(client->StartPush(
      {.lease = job::LeaseId(1),
       .tensors = {{.tensor = 4, .gradients = values.data(), .learning_rate = 1}}}));
  EXPECT_THAT(pushed, StatusIs(Code::kResourceExhausted));
}

TEST_F(LimitsTest, ADeclarationThatIsTooLongIsRefusedBeforeItIsSent) {
  const auto client = Connect(kSmall);
  Parameters parameters = SomeParameters();
  parameters.text += std::string(5000, ' ');
  const Status declared = client->Declare(parameters);
  EXPECT_THAT(declared, StatusIs(Code::kResourceExhausted));
  EXPECT_THAT(declared.message(), HasSubstr("declare fewer tables"));
}

// A server with a lower limit refuses by the header and closes while the rest is on its way.
TEST_F(LimitsTest, TheRefusalOfAServerIsReadAlsoWhenAWriteFails) {
  const auto client = Connect({});
  const std::vector<float> values(3 * kSize);
  for (int i = 0; i < 20; ++i) {
    const Status put = client->Put({{.tensor = 4, .values = values.data()}}).status();
    ASSERT_THAT(put, StatusIs(Code::kResourceExhausted)) << put;
  }
}

TEST_F(LimitsTest, AConnectionThatCannotBeWatchedIsAnErrorOfTheOperation) {
  const auto client = std::move(*ParameterClient::Connect(
      {.servers = {{"127.0.0.1", server_->port()}}, .limits = kSmall}, clock_));
  bool ran_out = false;
  Status declared;
  std::thread([&] {
    ran_out = wire::RunOutOfWatches();
    if (ran_out) declared = client->Declare(SomeParameters());
  }).join();
  if (!ran_out) GTEST_SKIP() << "system calls cannot be filtered here";

  EXPECT_THAT(declared, StatusIs(Code::kResourceExhausted)) << declared;
  EXPECT_THAT(declared.message(), HasSubstr("fs.epoll.max_user_watches"));
  EXPECT_OK(client->Declare(SomeParameters())) << "there is room again";
}

}  // namespace
}  // namespace edl::ps_client
