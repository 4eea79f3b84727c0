#include "ps_client/elasticdl_ps.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/host_port.h"
#include "base/json.h"
#include "base/text.h"
#include "ps_client/client.h"

namespace {

using edl::Result;
using edl::Status;
using edl::ps_client::ClientOptions;
using edl::ps_client::Keys;
using edl::ps_client::Parameters;

// The lease of a client's own batches. No master gives it out, and none can outdate it.
constexpr uint64_t kOwnLease = UINT64_MAX;

thread_local std::string t_last_error;

int CodeOf(const Status& status) {
  if (!status.ok()) t_last_error = status.message();
  return static_cast<int>(status.code());
}

Status CheckPointer(const void* pointer, const char* what) {
  if (pointer != nullptr) return edl::Ok();
  return edl::InvalidArgument("{} is NULL", what);
}

// Checks an argument that is an array.
Status CheckArray(const void* array, size_t count, const char* what) {
  return count == 0 ? edl::Ok() : CheckPointer(array, what);
}

Status CheckRate(float rate) {
  if (std::isfinite(rate)) return edl::Ok();
  return edl::InvalidArgument("the learning rate is {}; it must be finite", rate);
}

Result<ClientOptions> OptionsOf(const edl_ps_options& from) {
  using Transport = ClientOptions::Transport;
  ClientOptions options;
  const std::string_view servers = from.servers != nullptr ? from.servers : "";
  for (const std::string& text : edl::SplitList(servers)) {
    EDL_ASSIGN_OR_RETURN(edl::HostPort server, edl::ParseHostPort(text));
    options.servers.push_back(std::move(server));
  }
  if (from.token != nullptr) options.token = from.token;
  if (from.caller != nullptr) options.caller = from.caller;
  switch (from.transport) {
    case EDL_PS_AUTO:
      options.transport = Transport::kAuto;
      break;
    case EDL_PS_TCP:
      options.transport = Transport::kTcp;
      break;
    case EDL_PS_SHARED_MEMORY:
      options.transport = Transport::kSharedMemory;
      break;
    default:
      return edl::InvalidArgument("there is no transport {}", from.transport);
  }
  if (from.timeout > 0) {
    // Infinity, too: the client takes whatever is longer than a century for that.
    constexpr double kLongestSeconds = 5e9;
    options.timeout = std::chrono::duration_cast<edl::Duration>(
        std::chrono::duration<double>(std::min(from.timeout, kLongestSeconds)));
  }
  return options;
}

// What a client has to know of a declaration; all else is the server's to judge.
Result<Parameters> ParseParameters(const char* text) {
  EDL_ASSIGN_OR_RETURN(const nlohmann::json json, edl::ParseJson(text));
  if (!json.is_object()) return edl::InvalidArgument("the declaration is no JSON object");
  Parameters parameters{.text = text};
  const auto number = [](const nlohmann::json& of, const char* field) -> Result<size_t> {
    const auto found = of.is_object() ? of.find(field) : of.end();
    if (found == of.end() || !found->is_number_unsigned()) {
      return edl::InvalidArgument("no number '{}' in {}", field, edl::Dump(of));
    }
    return found->get<size_t>();
  };
  for (const auto& table : json.value("tables", nlohmann::json::array())) {
    EDL_ASSIGN_OR_RETURN(const size_t dim, number(table, "dim"));
    parameters.table_dims.push_back(dim);
  }
  for (const auto& tensor : json.value("tensors", nlohmann::json::array())) {
    EDL_ASSIGN_OR_RETURN(const size_t size, number(tensor, "size"));
    const auto name = tensor.find("name");
    if (name == tensor.end() || !name->is_string()) {
      return edl::InvalidArgument("no 'name' in {}", edl::Dump(tensor));
    }
    parameters.tensors.push_back({.name = name->get<std::string>(), .size = size});
  }
  return parameters;
}

}  // namespace

struct edl_ps {  // NOLINT: the header's name
  const edl::SystemClock clock{};
  std::unique_ptr<edl::ps_client::Client> client;
  std::vector<size_t> dims;
  size_t tensors = 0;
  // The batches that this client has pushed, once it has pushed one.
  bool is_open = false;
  edl::wire::ShardKey shard{};
  uint64_t next_batch = 0;

  Status CheckTable(size_t table, size_t ids) const {
    if (table >= dims.size()) return edl::InvalidArgument("no table {} was declared", table);
    if (ids > Keys::kMostIds) return edl::InvalidArgument("{} ids at a time", ids);
    return edl::Ok();
  }
  Status CheckTensor(size_t tensor) const {
    if (tensor >= tensors) return edl::InvalidArgument("no tensor {} was declared", tensor);
    return edl::Ok();
  }
  Keys KeysOf(const int64_t* ids, size_t count) const {
    Keys keys(client->placement());
    keys.Assign({ids, count});
    return keys;
  }

  Status Pull(int unknown, std::span<const edl_ps_rows> tables,
              std::span<const edl_ps_tensor> values);
  Result<bool> Push(std::span<const edl_ps_row_gradients> tables,
                    std::span<const edl_ps_tensor_gradient> values);
};

Status edl_ps::Pull(int unknown, std::span<const edl_ps_rows> tables,
                    std::span<const edl_ps_tensor> values) {
  using Unknown = edl::wire::Pull::Unknown;
  edl::ps_client::PullSpec spec{.unknown =
                                    unknown == EDL_PS_TELL ? Unknown::kTell : Unknown::kMake};
  std::vector<Keys> keys;
  std::vector<std::vector<float>> rows;
  keys.reserve(tables.size());
  for (const edl_ps_rows& table : tables) {
    EDL_RETURN_IF_ERROR(CheckTable(table.table, table.count));
    EDL_RETURN_IF_ERROR(CheckArray(table.ids, table.count, "ids"));
    EDL_RETURN_IF_ERROR(CheckArray(table.rows, table.count, "rows"));
    keys.push_back(KeysOf(table.ids, table.count));
    rows.emplace_back(keys.back().ids().size() * dims[table.table]);
    spec.tables.push_back({.table = table.table, .keys = &keys.back(), .rows = rows.back().data()});
  }
  for (const edl_ps_tensor& tensor : values) {
    EDL_RETURN_IF_ERROR(CheckTensor(tensor.tensor));
    EDL_RETURN_IF_ERROR(CheckPointer(tensor.values, "values"));
    spec.tensors.push_back({.tensor = tensor.tensor, .values = tensor.values});
  }
  EDL_RETURN_IF_ERROR(client->WaitPull(client->StartPull(spec)));
  for (size_t i = 0; i < tables.size(); ++i) {
    keys[i].Spread(rows[i].data(), dims[tables[i].table], tables[i].rows);
  }
  return edl::Ok();
}

// Whether it was refused.
Result<bool> edl_ps::Push(std::span<const edl_ps_row_gradients> tables,
                          std::span<const edl_ps_tensor_gradient> values) {
  using Outcome = edl::ps_client::PushResult::Outcome;
  edl::ps_client::PushSpec spec{.lease = kOwnLease};
  std::vector<Keys> keys;
  std::vector<std::vector<float>> sums;
  keys.reserve(tables.size());
  for (const edl_ps_row_gradients& table : tables) {
    EDL_RETURN_IF_ERROR(CheckTable(table.table, table.count));
    EDL_RETURN_IF_ERROR(CheckArray(table.ids, table.count, "ids"));
    EDL_RETURN_IF_ERROR(CheckArray(table.gradients, table.count, "gradients"));
    EDL_RETURN_IF_ERROR(CheckRate(table.learning_rate));
    const size_t dim = dims[table.table];
    keys.push_back(KeysOf(table.ids, table.count));
    sums.emplace_back(keys.back().ids().size() * dim);
    keys.back().Sum(table.gradients, dim, sums.back().data());
    spec.tables.push_back({.table = table.table,
                           .keys = &keys.back(),
                           .gradients = sums.back().data(),
                           .learning_rate = table.learning_rate});
  }
  for (const edl_ps_tensor_gradient& tensor : values) {
    EDL_RETURN_IF_ERROR(CheckTensor(tensor.tensor));
    EDL_RETURN_IF_ERROR(CheckPointer(tensor.gradient, "gradient"));
    EDL_RETURN_IF_ERROR(CheckRate(tensor.learning_rate));
    spec.tensors.push_back({.tensor = tensor.tensor,
                            .gradients = tensor.gradient,
                            .learning_rate = tensor.learning_rate});
  }
  if (!is_open) {
    std::random_device random;
    shard = {.ledger = (uint64_t{random()} << 32) | random()};
    EDL_ASSIGN_OR_RETURN(const edl::ps_client::Client::Opened opened,
                         client->Open(kOwnLease, shard));
    next_batch = opened.mark;
    is_open = true;
  }
  spec.shard = shard;
  spec.batch = next_batch;
  is_open = false;  // until it is known what became of the batch
  EDL_ASSIGN_OR_RETURN(const auto result, client->WaitPush(client->StartPush(spec)));
  if (result.outcome == Outcome::kStale) {
    is_open = true;
    return edl::OutOfRange("the parameters of this batch were too old for its round");
  }
  if (result.outcome != Outcome::kApplied) {
    return edl::Aborted("a parameter server was started anew and lacks batches of this client");
  }
  is_open = true;
  ++next_batch;
  return result.refused;
}

int edl_ps_connect(const edl_ps_options* options, edl_ps** client) {
  const auto connect = [&]() -> Status {
    EDL_RETURN_IF_ERROR(CheckPointer(options, "options"));
    EDL_RETURN_IF_ERROR(CheckPointer(client, "client"));
    EDL_ASSIGN_OR_RETURN(ClientOptions parsed, OptionsOf(*options));
    auto made = std::make_unique<edl_ps>();
    EDL_ASSIGN_OR_RETURN(made->client,
                         edl::ps_client::Client::Connect(std::move(parsed), made->clock));
    *client = made.release();
    return edl::Ok();
  };
  return CodeOf(connect());
}

int edl_ps_declare(edl_ps* client, const char* json) {
  const auto declare = [&]() -> Status {
    EDL_RETURN_IF_ERROR(CheckPointer(client, "client"));
    EDL_RETURN_IF_ERROR(CheckPointer(json, "json"));
    EDL_ASSIGN_OR_RETURN(const Parameters parameters, ParseParameters(json));
    EDL_RETURN_IF_ERROR(client->client->Declare(parameters));
    client->dims = parameters.table_dims;
    client->tensors = parameters.tensors.size();
    return edl::Ok();
  };
  return CodeOf(declare());
}

int edl_ps_put(edl_ps* client, const edl_ps_tensor* tensors, size_t count) {
  const auto put = [&]() -> Status {
    EDL_RETURN_IF_ERROR(CheckPointer(client, "client"));
    EDL_RETURN_IF_ERROR(CheckArray(tensors, count, "tensors"));
    std::vector<edl::ps_client::TensorPush> values;
    for (const edl_ps_tensor& tensor : std::span(tensors, count)) {
      EDL_RETURN_IF_ERROR(client->CheckTensor(tensor.tensor));
      EDL_RETURN_IF_ERROR(CheckPointer(tensor.values, "values"));
      values.push_back({.tensor = tensor.tensor, .gradients = tensor.values});
    }
    return client->client->Put(values).status();
  };
  return CodeOf(put());
}

int edl_ps_pull(edl_ps* client, int unknown, const edl_ps_rows* tables, size_t table_count,
                const edl_ps_tensor* tensors, size_t tensor_count) {
  const auto pull = [&]() -> Status {
    EDL_RETURN_IF_ERROR(CheckPointer(client, "client"));
    EDL_RETURN_IF_ERROR(CheckArray(tables, table_count, "tables"));
    EDL_RETURN_IF_ERROR(CheckArray(tensors, tensor_count, "tensors"));
    return client->Pull(unknown, {tables, table_count}, {tensors, tensor_count});
  };
  return CodeOf(pull());
}

int edl_ps_push(edl_ps* client, const edl_ps_row_gradients* tables, size_t table_count,
                const edl_ps_tensor_gradient* tensors, size_t tensor_count, int* refused) {
  const auto push = [&]() -> Status {
    EDL_RETURN_IF_ERROR(CheckPointer(client, "client"));
    EDL_RETURN_IF_ERROR(CheckArray(tables, table_count, "tables"));
    EDL_RETURN_IF_ERROR(CheckArray(tensors, tensor_count, "tensors"));
    EDL_ASSIGN_OR_RETURN(const bool is_refused,
                         client->Push({tables, table_count}, {tensors, tensor_count}));
    if (refused != nullptr) *refused = is_refused ? 1 : 0;
    return edl::Ok();
  };
  return CodeOf(push());
}

int edl_ps_flush(edl_ps* client) {
  const Status given = CheckPointer(client, "client");
  return CodeOf(given.ok() ? client->client->Flush() : given);
}

int edl_ps_save(edl_ps* client, const char* folder) {
  const auto save = [&]() -> Status {
    EDL_RETURN_IF_ERROR(CheckPointer(client, "client"));
    EDL_RETURN_IF_ERROR(CheckPointer(folder, "folder"));
    return client->client->Save(folder).status();
  };
  return CodeOf(save());
}

int edl_ps_restore(edl_ps* client, const char* folder) {
  const auto restore = [&]() -> Status {
    EDL_RETURN_IF_ERROR(CheckPointer(client, "client"));
    EDL_RETURN_IF_ERROR(CheckPointer(folder, "folder"));
    client->is_open = false;
    return client->client->Restore(folder).status();
  };
  return CodeOf(restore());
}

const char* edl_ps_last_error(void) {  // NOLINT: as in the header
  return t_last_error.c_str();
}

void edl_ps_close(edl_ps* client) { delete client; }
