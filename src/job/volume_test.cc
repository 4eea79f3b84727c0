#include "job/volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseVolumes, ReadsSeveralMounts) {
  EXPECT_THAT(*ParseVolumes("host_path=/a,type=Directory,mount_path=/data ;\n"
                            " claim_name=c,mount_path=/b,sub_path=x/y; "),
              ElementsAre(Volume{.host_path = "/a", .type = "Directory", .mount_path = "/data"},
                          Volume{.claim_name = "c", .mount_path = "/b", .sub_path = "x/y"}));
  EXPECT_TRUE(ParseVolumes("")->empty());
}

TEST(ParseVolumes, ReadsAJsonList) {
  EXPECT_THAT(*ParseVolumes(R"([{"host_path": "/a;b,c", "mount_path": "/data"}])"),
              ElementsAre(Volume{.host_path = "/a;b,c", .mount_path = "/data"}));
}

TEST(ParseVolumes, PointsAtWhatIsWrong) {
  const auto error = [](std::string_view text) { return ParseVolumes(text).status().message(); };
  EXPECT_EQ(error("host_path=/a,mount_path=/data,mount_path=/b"),
            "'mount_path' at character 31 is there twice");
  EXPECT_THAT(error("host_path=/a,mount_path=/b;path=/c"),
              HasSubstr("'path' at character 28 is no key of a volume"));
  EXPECT_EQ(error("host_path=/a"), "volume 1 at character 1: mount_path is missing");
  EXPECT_EQ(error("mount_path=/a"),
            "volume 1 at character 1: it needs one of claim_name and host_path");
  EXPECT_THAT(error("host_path=/a,claim_name=b,mount_path=/c"), HasSubstr("needs one of"));
  EXPECT_THAT(error("host_path=data,mount_path=/c"), HasSubstr("host_path=data is not absolute"));
  EXPECT_THAT(error("host_path=/d,mount_path=c"), HasSubstr("mount_path=c is not absolute"));
  EXPECT_THAT(error("host_path=/d,mount_path=/c,sub_path=../x"), HasSubstr("leaves the volume"));
  EXPECT_THAT(error("claim_name=d,type=File,mount_path=/c"), HasSubstr("goes with host_path"));
  EXPECT_EQ(error("host_path=/a,mount_path=/c;host_path=/b,mount_path=/c"),
            "two volumes have mount_path=/c");
  EXPECT_THAT(error("[1]"), HasSubstr("not an object"));
  EXPECT_THAT(error("[{"), HasSubstr("not JSON"));
}

}  // namespace
}  // namespace edl::job
