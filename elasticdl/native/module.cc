// The names of elasticdl._native. They are private to the package, and may change.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/host_port.h"
#include "base/secret.h"
#include "checkpoint/table_ids.h"
#include "elasticdl/native/arrays.h"
#include "elasticdl/native/client.h"
#include "elasticdl/native/records.h"
#include "elasticdl/native/status.h"
#include "elasticdl/native/strong_id.h"
#include "ps_client/own_shard.h"

namespace nb = nanobind;

NB_MODULE(_native, module) {
  using edl::native::Client;
  using edl::native::PendingPush;
  using edl::native::Prefetch;
  using edl::native::PulledVersions;
  using edl::ps_client::OwnShard;
  // A program may exit with a client in a global variable.
  nb::set_leak_warnings(false);
  edl::native::DefineExceptions(module);
  edl::native::DefineRecords(module);
  module.def(
      "read_secret_file",
      [](const std::string& path) { return edl::native::OrRaise(edl::ReadSecretFile(path)); },
      nb::arg("path"));
  module.def(
      "parse_host_port",
      [](const std::string& text) {
        edl::HostPort parsed = edl::native::OrRaise(edl::ParseHostPort(text));
        return std::pair(std::move(parsed.host), parsed.port);
      },
      nb::arg("text"));

  module.def(
      "newest_checkpoint",
      [](const std::string& folder) {
        return edl::native::OrRaise(edl::checkpoint::NewestCheckpoint(folder)).string();
      },
      nb::arg("folder"));
  module.def(
      "read_table_ids",
      [](const std::string& folder, const std::string& table) {
        edl::Result<std::vector<int64_t>> ids = [&] {
          const nb::gil_scoped_release released;
          return edl::checkpoint::ReadTableIds(folder, table);
        }();
        return edl::native::ArrayOfIds(edl::native::OrRaise(std::move(ids)));
      },
      nb::arg("folder"), nb::arg("table"));

  // The numbers of elasticdl.Outcome, and the only place where Python gets them from.
  using Outcome = edl::wire::PushOutcome;
  nb::dict outcomes;
  for (const auto& [name, outcome] : {std::pair{"APPLIED", Outcome::kApplied},
                                      {"ALREADY", Outcome::kAlready},
                                      {"AHEAD", Outcome::kAhead},
                                      {"NOT_OPEN", Outcome::kNotOpen},
                                      {"FENCED", Outcome::kFenced},
                                      {"STALE", Outcome::kStale}}) {
    outcomes[name] = static_cast<int>(outcome);
  }
  // Not from a server: the client found a NaN or infinite gradient in a batch that was applied.
  outcomes["REFUSED"] = -1;
  module.attr("OUTCOMES") = outcomes;

  module.attr("OWN_LEASE") = edl::job::kOwnLease.value();
  nb::class_<OwnShard>(module, "OwnShard")
      .def(nb::init<>())
      .def("key", [](const OwnShard& shard) { return edl::native::TupleOf(shard.key()); })
      .def("next", &OwnShard::Next)
      .def(
          "settle",
          [](OwnShard& shard, uint64_t batch, int outcome) {
            return static_cast<int>(
                edl::native::OrRaise(shard.Settle(batch, static_cast<Outcome>(outcome))));
          },
          nb::arg("batch"), nb::arg("outcome"))
      .def("break_off", &OwnShard::Break)
      .def("is_broken", &OwnShard::is_broken);

  nb::class_<PulledVersions>(module, "PulledVersions").def("oldest", &PulledVersions::Oldest);
  nb::class_<Prefetch>(module, "Prefetch")
      .def("done", &Prefetch::IsDone)
      .def("take", &Prefetch::Take)
      .def("versions", &Prefetch::versions);
  nb::class_<PendingPush>(module, "PendingPush")
      .def("done", &PendingPush::IsDone)
      .def("result", &PendingPush::Result);

  // noconvert: otherwise nanobind would copy an array of another type without an error.
  nb::class_<Client>(module, "Client")
      .def(nb::init<std::vector<Client::Server>, std::string, std::string, const std::string&,
                    double, bool>(),
           nb::arg("servers"), nb::arg("token"), nb::arg("caller"), nb::arg("transport"),
           nb::arg("timeout"), nb::arg("follows_restarts"))
      .def("declare", &Client::Declare, nb::arg("text"), nb::arg("dims"), nb::arg("tensors"))
      .def("put", &Client::Put, nb::arg("values").noconvert())
      .def("pull", &Client::Pull, nb::arg("tables").noconvert(), nb::arg("create"))
      .def("start_pull", &Client::StartPull, nb::arg("tables").noconvert(), nb::arg("tensors"),
           nb::arg("create"))
      .def("pull_tensors", &Client::PullTensors, nb::arg("tensors"))
      .def("open", &Client::Open, nb::arg("lease"), nb::arg("shard"), nb::arg("at_least_epoch") = 0)
      .def("push", &Client::Push, nb::arg("lease"), nb::arg("shard"), nb::arg("batch"),
           nb::arg("tables").noconvert(), nb::arg("tensors").noconvert(),
           nb::arg("versions").none() = nb::none(), nb::arg("opens") = false)
      .def("start_push", &Client::StartPush, nb::arg("lease"), nb::arg("shard"), nb::arg("batch"),
           nb::arg("tables").noconvert(), nb::arg("tensors").noconvert(),
           nb::arg("versions").none() = nb::none(), nb::arg("opens") = false)
      .def("flush", &Client::Flush)
      .def("save", &Client::Save, nb::arg("folder"))
      .def("restore", &Client::Restore, nb::arg("folder"))
      .def("close", &Client::Close)
      .def("live_arrays", &Client::live_arrays)
      .def("restarts", &Client::restarts);
}
