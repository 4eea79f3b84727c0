#include "base/host_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl {
namespace {

TEST(HostPort, ReadsNamesAndAddresses) {
  EXPECT_EQ(ParseHostPort("localhost:1").value(), (HostPort{"localhost", 1}));
  EXPECT_EQ(ParseHostPort("10.0.0.7:65535").value(), (HostPort{"10.0.0.7", 65535}));
  EXPECT_EQ(ParseHostPort("ps-0.job.ns.svc:2222").value(), (HostPort{"ps-0.job.ns.svc", 2222}));
  EXPECT_EQ(ParseHostPort("[::1]:80").value(), (HostPort{"::1", 80}));
}

TEST(HostPort, RejectsAnythingElse) {
  for (const char* text : {"", ":", "host", "host:", ":80", "host:0", "host:65536", "host:+1",
                           "host:-1", "host: 1", "host:1 ", " host:1", "host:1x", "::1:80", "[::1]",
                           "[]:80", "[::1:80", "::1]:80", "host:99999999999"}) {
    const Status status = ParseHostPort(text).status();
    EXPECT_THAT(status, StatusIs(Code::kInvalidArgument)) << text;
    EXPECT_THAT(status.message(), testing::HasSubstr(std::string("'") + text + "'"));
  }
}

}  // namespace
}  // namespace edl
