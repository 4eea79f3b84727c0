#include "reconciler/job_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

using nlohmann::json;

constexpr WallTime kThen{std::chrono::seconds(1'700'000'000)};

TEST(JobStatus, IndicesArePrintedAsRanges) {
  EXPECT_EQ(FormatIndices({}), "");
  EXPECT_EQ(FormatIndices({3}), "3");
  EXPECT_EQ(FormatIndices({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(ParseIndices("0-2,5,7-8"), (std::set<int>{0, 1, 2, 5, 7, 8}));
}

TEST(JobStatus, IndicesAreReadUpToTheFirstMistake) {
  for (const char* text : {"0,x", "0,-1", "0,5-3", "0,99999999999", "0;1", "0,"}) {
    EXPECT_EQ(ParseIndices(text), std::set<int>{0}) << text;
  }
  EXPECT_EQ(ParseIndices("0-2147483647").size(), 100'000u);
}

TEST(JobStatus, IndicesThatAreNotAscendingEndTheList) {
  EXPECT_EQ(ParseIndices("3,5,4,9"), (std::set<int>{3, 5}));
  EXPECT_EQ(ParseIndices("0-99998,0-99998"), ParseIndices("0-99998"));
}

TEST(JobStatus, WhatIsPrintedIsReadAsTheSame) {
  JobStatus status;
  status.conditions.Set(kCreated, true, "TFJobCreated", "TFJob j is created.", kThen);
  status.replicas[ReplicaType::kPs] = {.active = 2, .succeeded = 0, .failed = 1};
  status.replicas[ReplicaType::kWorker] = {};
  status.start_time = kThen;
  status.retries = 3;
  status.replacing = {"a", "b"};
  status.completed[ReplicaType::kWorker] = {0, 1};
  status.progress = "40 %";
  const json printed = StatusJson(status, json());
  EXPECT_EQ(ParseStatus(printed), status);
  EXPECT_EQ(printed["replicaStatuses"].dump(), R"({"PS":{"active":2,"failed":1},"Worker":{}})");
  EXPECT_FALSE(printed.contains("completionTime"));
}

TEST(JobStatus, FieldsOfOthersAreKept) {
  const json stored = {{"lastReconcileTime", "2026-01-01T00:00:00Z"},
                       {"elasticdl", {{"newer", 1}, {"retries", 5}}}};
  const json printed = StatusJson(JobStatus(), stored);
  EXPECT_EQ(printed["lastReconcileTime"], "2026-01-01T00:00:00Z");
  EXPECT_EQ(printed["elasticdl"].dump(), R"({"newer":1})");
}

TEST(JobStatus, FieldsOfUnexpectedTypesReadAsEmpty) {
  const json stored = json::parse(R"({
      "conditions": [7, null, {"type": 5, "status": true, "lastUpdateTime": "yesterday"}],
      "replicaStatuses": {"Worker": [], "Unknown": {"active": 1}, "PS": {"active": "two"}},
      "startTime": 12, "completionTime": [],
      "elasticdl": {"retries": "x", "replacing": {"a": 1}, "completed": ["0"], "progress": 3}})");
  const JobStatus status = ParseStatus(stored);
  EXPECT_FALSE(status.conditions.finished());
  EXPECT_EQ(status.replicas.at(ReplicaType::kPs).active, 0);
  EXPECT_EQ(status.start_time, std::nullopt);
  EXPECT_EQ(status.retries, 0);
  EXPECT_TRUE(status.replacing.empty());
  EXPECT_TRUE(status.completed.empty());
  for (const json& other : {json(), json(3), json("x"), json::array()}) {
    EXPECT_EQ(ParseStatus(other), JobStatus());
  }
}

TEST(JobStatus, NumbersThatNoOperatorWritesAreLimited) {
  const json stored = {{"elasticdl", {{"retries", INT64_MAX}}},
                       {"replicaStatuses", {{"PS", {{"active", INT64_MIN}}}}}};
  const JobStatus status = ParseStatus(stored);
  EXPECT_EQ(status.retries, 1'000'000'000);
  EXPECT_EQ(status.replicas.at(ReplicaType::kPs).active, 0);
}

TEST(JobStatus, OnlyCountsAndProgressMayBeWrittenLater) {
  JobStatus old_status;
  JobStatus counted = old_status;
  counted.replicas[ReplicaType::kWorker].active = 1;
  counted.progress = "1 %";
  EXPECT_TRUE(DifferOnlyInCounts(old_status, counted));
  EXPECT_FALSE(DifferOnlyInCounts(old_status, old_status));
  counted.completed[ReplicaType::kWorker] = {0};
  EXPECT_FALSE(DifferOnlyInCounts(old_status, counted));
}

}  // namespace
}  // namespace edl::reconciler
