// The input is a message to a parameter server; its first byte is the type. A decoded message is
// encoded to the same bytes, and a lane answers or rejects it, with any tensors after it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "checkpoint/shard_set.h"
#include "ps/lane.h"
#include "wire/messages.h"

namespace {

using edl::ps::Lane;

template <typename Message>
bool DecodesToItself(std::span<const std::byte> bytes, Message& message) {
  if (!edl::wire::Decode(bytes, message).ok()) return false;
  const std::string again = edl::wire::Encode(message);
  CHECK(std::ranges::equal(std::as_bytes(std::span(again)), bytes),
        "a decoded message is encoded to other bytes");
  return true;
}

// A lane with a table of dimension 2 and a tensor of 3 values, and an open shard.
struct Served {
  Served() {
    const auto declaration = edl::ps::ParseDeclaration(
        R"({"tables": [{"name": "t", "dim": 2}], "tensors": [{"name": "d", "size": 3}]})");
    declared = *lane.Declare(*declaration);
    CHECK(lane.Open({.lease = edl::job::LeaseId(1)}).ok(), "the shard did not open");
  }
  Lane lane{edl::wire::Placement(1), edl::job::LaneInJob(0)};
  edl::ps::DeclaredParameters declared;
};

void Ask(uint8_t type, std::span<const std::byte> meta, std::span<const std::byte> tensors) {
  Served served;
  edl::wire::Hello hello;
  edl::wire::Declare declare;
  edl::wire::Put put;
  edl::wire::Pull pull;
  edl::wire::Open open;
  edl::wire::Push push;
  edl::wire::Restore restore;
  edl::wire::Serve serve;
  switch (type % 9) {
    case 0:
      DecodesToItself(meta, hello);
      return;
    case 1:
      if (DecodesToItself(meta, declare)) {
        const auto declaration = edl::ps::ParseDeclaration(declare.text);
        if (declaration.ok()) (void)served.lane.Declare(*declaration);
      }
      return;
    case 2:
      if (DecodesToItself(meta, put)) (void)served.lane.Put(served.declared, put, tensors);
      return;
    case 3:
      if (DecodesToItself(meta, pull)) {
        const auto plan = served.lane.Plan(served.declared, pull, tensors);
        if (!plan.ok()) return;
        edl::wire::Buffer out(plan->bytes);
        served.lane.Pull(*plan, out.data());
      }
      return;
    case 4:
      if (DecodesToItself(meta, open)) (void)served.lane.Open(open);
      return;
    case 5:
      if (DecodesToItself(meta, push)) (void)served.lane.Push(served.declared, push, tensors);
      return;
    case 7:
      DecodesToItself(meta, restore);
      return;
    case 8:
      if (DecodesToItself(meta, serve)) {
        const auto covered = edl::checkpoint::ShardSet::FromJson(serve.covered);
        if (!covered.ok()) return;
        served.lane.state().watermarks.RaiseFloor(serve.floor);
        served.lane.state().watermarks.Drop(*covered);
      }
      return;
    default:
      CHECK(!edl::wire::DecodeRefusal(meta).ok(), "a decoded refusal must be an error");
  }
}

}  // namespace

// The input: the type, the length of the meta part (1 byte), the meta part, tensors.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const size_t meta = std::min<size_t>(data[1], size - 2);
  // Frame readers align tensors.
  const std::span<const std::byte> rest = bytes.subspan(2 + meta);
  edl::wire::Buffer tensors(rest.size());
  std::ranges::copy(rest, tensors.data());
  Ask(data[0], bytes.subspan(2, meta), tensors.bytes());
  return 0;
}
