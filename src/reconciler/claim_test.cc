#include "reconciler/claim.h"

#include "reconciler/testing/cluster_model.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

using Kind = Action::Kind;

// What happens to one object. "own": it is the job's own.
struct Fate {
  bool own = false;
  std::vector<Kind> actions;
  bool operator==(const Fate&) const = default;
};

const Fate kOwn{.own = true, .actions = {}};
const Fate kNotTouched{.own = false, .actions = {}};

struct ClaimCase {
  const char* name;
  std::string label = "j";
  std::string owner = kJobUid;
  bool deleting = false;
  bool job_deleting = false;
  bool job_finished = false;
  std::string object_name = "j-worker-0";
};

Observed ObservedFor(const ClaimCase& each) {
  Observed observed;
  observed.job = ParsedJob(JobObject({{"Worker", Role(1)}}));
  observed.job.deleting = each.job_deleting;
  if (each.job_finished) {
    observed.job.status.conditions.Set(kSucceeded, true, "TFJobSucceeded", "", kNoon);
  }
  return observed;
}

std::vector<Kind> KindsOf(const std::vector<Action>& actions) {
  std::vector<Kind> kinds;
  kinds.reserve(actions.size());
  for (const Action& action : actions) kinds.push_back(action.kind);
  return kinds;
}

Fate OfPod(const ClaimCase& each) {
  Observed observed = ObservedFor(each);
  ReplicaPod pod = PodOf(ReplicaType::kWorker, 0, PodOutcome::kActive);
  pod.name = each.object_name;
  pod.job = each.label;
  pod.owner = each.owner;
  if (each.deleting) pod.deletion_time = kNoon;
  observed.pods = {pod};
  const Claimed claimed = Claim(observed);
  return {.own = !claimed.pods.empty(), .actions = KindsOf(claimed.actions)};
}

Fate OfService(const ClaimCase& each) {
  Observed observed = ObservedFor(each);
  ReplicaService service = ServiceOf(ReplicaType::kWorker, 0);
  service.name = each.object_name;
  service.job = each.label;
  service.owner = each.owner;
  service.deleting = each.deleting;
  observed.services = {service};
  const Claimed claimed = Claim(observed);
  return {.own = !claimed.services.empty(), .actions = KindsOf(claimed.actions)};
}

TEST(Claim, T_R1_MatchingObjectsAreTheJobsOwn) {
  for (const ClaimCase& each :
       {ClaimCase{.name = "owned"}, ClaimCase{.name = "owned, being deleted", .deleting = true},
        ClaimCase{.name = "owned, of a finished job", .job_finished = true}}) {
    EXPECT_EQ(OfPod(each), kOwn) << each.name;
    EXPECT_EQ(OfService(each), kOwn) << each.name;
  }
}

TEST(Claim, T_R1_AnObjectWithoutControllerIsAdopted) {
  const ClaimCase orphan{.name = "orphan", .owner = ""};
  EXPECT_EQ(OfPod(orphan), (Fate{.own = true, .actions = {Kind::kAdoptPod}}));
  EXPECT_EQ(OfService(orphan), (Fate{.own = true, .actions = {Kind::kAdoptService}}));
}

TEST(Claim, T_R1_AJobThatIsDeletedKeepsItsOwnButAdoptsNothing) {
  const ClaimCase own{.name = "owned", .job_deleting = true};
  EXPECT_EQ(OfPod(own), kOwn);
  EXPECT_EQ(OfService(own), kOwn);
  const ClaimCase orphan{.name = "orphan", .owner = "", .job_deleting = true};
  EXPECT_EQ(OfPod(orphan), kNotTouched);
  EXPECT_EQ(OfService(orphan), kNotTouched);
}

TEST(Claim, T_R1_ObjectsOfOthersAreNeverClaimed) {
  for (const std::string label : {"j", "other"}) {
    const ClaimCase other{.name = "of another", .label = label, .owner = "uid-of-another"};
    EXPECT_EQ(OfPod(other), kNotTouched);
    EXPECT_EQ(OfService(other), kNotTouched);
  }
}

TEST(Claim, T_R1_AnOwnedObjectWithAnotherLabelIsReleased) {
  for (const std::string label : {"other", ""}) {
    const ClaimCase moved{.name = "moved", .label = label};
    EXPECT_EQ(OfPod(moved), (Fate{.own = false, .actions = {Kind::kReleasePod}}));
    EXPECT_EQ(OfService(moved), (Fate{.own = false, .actions = {Kind::kReleaseService}}));
  }
}

TEST(Claim, T_R1_AnObjectThatIsDeletedIsNotAdopted) {
  const ClaimCase orphan{.name = "orphan, being deleted", .owner = "", .deleting = true};
  EXPECT_EQ(OfPod(orphan), kNotTouched);
  EXPECT_EQ(OfService(orphan), kNotTouched);
}

TEST(Claim, AFinishedJobAdoptsNothing) {
  const ClaimCase orphan{.name = "orphan", .owner = "", .job_finished = true};
  EXPECT_EQ(OfPod(orphan), kNotTouched);
  EXPECT_EQ(OfService(orphan), kNotTouched);
}

TEST(Claim, AnObjectWithTheNameOfNoReplicaIsNotAdopted) {
  const ClaimCase orphan{.name = "orphan", .owner = "", .object_name = "debug-copy"};
  EXPECT_EQ(OfPod(orphan), kNotTouched);
  EXPECT_EQ(OfService(orphan), kNotTouched);
}

}  // namespace
}  // namespace edl::reconciler
