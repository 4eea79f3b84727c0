#include "job/volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseVolumes, ReadsSeveralMounts) {
  EXPECT_THAT(
      *ParseVolumes("host_path=/a,type=Directory,mount_path=/data ;\n"
                    " claim_name=c,mount_path=/b,sub_path=x/y; "),
      ElementsAre(
          Volume{.host_path = "/a", .type = HostPathType::kDirectory, .mount_path = "/data"},
          Volume{.claim_name = "c", .mount_path = "/b", .sub_path = "x/y"}));
  EXPECT_TRUE(ParseVolumes("")->empty());
}

TEST(ParseVolumes, ReadsAJsonList) {
  EXPECT_THAT(*ParseVolumes(R"([{"host_path": "/a;b,c", "mount_path": "/data"}])"),
              ElementsAre(Volume{.host_path = "/a;b,c", .mount_path = "/data"}));
}

TEST(ParseVolumes, ReportsThePositionOfAnError) {
  const auto error = [](std::string_view text) { return ParseVolumes(text).status().message(); };
  EXPECT_EQ(error("host_path=/a,mount_path=/data,mount_path=/b"),
            "'mount_path' at character 31 is given twice");
  EXPECT_THAT(error("host_path=/a,mount_path=/b;path=/c"),
              HasSubstr("unknown key 'path' at character 28"));
  EXPECT_EQ(error("host_path=/a"), "volume 1 at character 1: mount_path is missing");
  EXPECT_EQ(error("mount_path=/a"),
            "volume 1 at character 1: exactly one of claim_name and host_path is needed");
  EXPECT_THAT(error("host_path=/a,claim_name=b,mount_path=/c"), HasSubstr("exactly one of"));
  EXPECT_THAT(error("host_path=data,mount_path=/c"),
              HasSubstr("host_path=data must be an absolute path"));
  EXPECT_THAT(error("host_path=/d,mount_path=c"),
              HasSubstr("mount_path=c must be an absolute path"));
  EXPECT_THAT(error("host_path=/d,mount_path=/c,sub_path=../x"),
              HasSubstr("must not lead out of the volume"));
  EXPECT_THAT(error("claim_name=d,type=File,mount_path=/c"),
              HasSubstr("allowed only with host_path"));
  EXPECT_THAT(error("host_path=/a,type=Folder,mount_path=/c"),
              HasSubstr("unknown type 'Folder' at character 19; expected Directory, "));
  EXPECT_EQ(error("host_path=/a,mount_path=/c;host_path=/b,mount_path=/c"),
            "two volumes have the same mount_path=/c");
  EXPECT_THAT(error("[1]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error("[{"), HasSubstr("not JSON"));
}

}  // namespace
}  // namespace edl::job
