#include "rpc/status.h"

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::rpc {
namespace {

TEST(RpcStatus, KeepsEveryCodeAndItsMessage) {
  EXPECT_OK(FromGrpc(ToGrpc(Ok())));
  for (int code = 1; code <= 16; ++code) {
    const Status status(static_cast<Code>(code), "why");
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
}

TEST(RpcStatus, MapsAnUnknownNumberToUnknown) {
  constexpr int kUnassigned = 31;  // the largest that the enumeration can hold
  EXPECT_EQ(FromGrpc(grpc::Status(static_cast<grpc::StatusCode>(kUnassigned), "odd")),
            Status(Code::kUnknown, "odd"));
}

}  // namespace
}  // namespace edl::rpc
