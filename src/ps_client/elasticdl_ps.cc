#include "ps_client/elasticdl_ps.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
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
#include "ps_client/own_shard.h"
#include "ps_client/parameter_client.h"

namespace {

using edl::Result;
using edl::Status;
using edl::ps_client::ClientOptions;
using edl::ps_client::Keys;
using edl::ps_client::OwnShard;
using edl::ps_client::Parameters;

thread_local std::string t_last_error;

int CodeOf(const Status& status) {
  if (!status.ok()) t_last_error = status.message();
  return static_cast<int>(status.code());
}

Status CheckPointer(const void* pointer, const char* what) {
  if (pointer != nullptr) return edl::Ok();
  return edl::InvalidArgument("{} is NULL", what);
}

// Checks an array argument, which may be NULL if it is empty.
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
      return edl::InvalidArgument(
          "transport is {}; it must be EDL_PS_AUTO, EDL_PS_TCP or EDL_PS_SHARED_MEMORY",
          from.transport);
  }
  if (from.timeout > 0) {
    // Longer timeouts, and infinity, mean no timeout: ParameterClient caps them at a century.
    constexpr double kLongestSeconds = 5e9;
    options.timeout = std::chrono::duration_cast<edl::Duration>(
        std::chrono::duration<double>(std::min(from.timeout, kLongestSeconds)));
  }
  return options;
}

// Reads what the client needs of a declaration. The server checks the rest.
Result<Parameters> ParseParameters(const char* text) {
  EDL_ASSIGN_OR_RETURN(const nlohmann::json json, edl::ParseJson(text));
  if (!json.is_object()) return edl::InvalidArgument("the declaration is not a JSON object");
  Parameters parameters{.text = text};
  const auto number = [](const nlohmann::json& of, const char* field) -> Result<size_t> {
    const auto found = of.is_object() ? of.find(field) : of.end();
    if (found == of.end() || !found->is_number_unsigned()) {
      return edl::InvalidArgument("the declaration has {}: its '{}' must be a whole number",
                                  edl::Excerpt(of), field);
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
      return edl::InvalidArgument("the declaration has tensor {}: its 'name' must be a string",
                                  edl::Excerpt(tensor));
    }
    parameters.tensors.push_back({.name = name->get<std::string>(), .size = size});
  }
  return parameters;
}

}  // namespace

struct edl_ps {  // NOLINT: the header's name
  const edl::SystemClock clock{};
  std::unique_ptr<edl::ps_client::ParameterClient> client;
  std::vector<size_t> dims;
  size_t tensors = 0;
  std::optional<OwnShard> own;  // none: no batch was pushed since connecting or restoring

  Status CheckTable(size_t table, size_t ids) const {
    if (table >= dims.size()) return edl::InvalidArgument("table {} was not declared", table);
    if (ids > Keys::kMostIds)
      return edl::InvalidArgument("{} ids are too many for one call; the limit is {}", ids,
                                  Keys::kMostIds);
    return edl::Ok();
  }
  Status CheckTensor(size_t tensor) const {
    if (tensor >= tensors) return edl::InvalidArgument("tensor {} was not declared", tensor);
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

// Returns whether the batch was refused.
Result<bool> edl_ps::Push(std::span<const edl_ps_row_gradients> tables,
                          std::span<const edl_ps_tensor_gradient> values) {
  edl::ps_client::PushSpec spec{.lease = edl::job::kOwnLease};
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
  if (!own.has_value() || own->is_broken()) own.emplace();
  spec.shard = own->key();
  spec.batch = own->Next();
  const auto push = [&]() -> Result<edl::ps_client::PushResult> {
    if (spec.batch == 0) EDL_RETURN_IF_ERROR(client->Open(spec.lease, spec.shard).status());
    return client->WaitPush(client->StartPush(spec));
  };
  const Result<edl::ps_client::PushResult> result = push();
  if (!result.ok()) {
    own->Break();
    return result.status();
  }
  EDL_ASSIGN_OR_RETURN(const edl::wire::PushOutcome outcome,
                       own->Settle(spec.batch, result->outcome));
  if (outcome == edl::wire::PushOutcome::kStale) {
    return edl::OutOfRange(
        "the parameters of this batch are too old for its round: pull, and compute the batch "
        "again");
  }
  return result->refused;
}

int edl_ps_connect(const edl_ps_options* options, edl_ps** client) {
  const auto connect = [&]() -> Status {
    EDL_RETURN_IF_ERROR(CheckPointer(options, "options"));
    EDL_RETURN_IF_ERROR(CheckPointer(client, "client"));
    EDL_ASSIGN_OR_RETURN(ClientOptions parsed, OptionsOf(*options));
    auto made = std::make_unique<edl_ps>();
    EDL_ASSIGN_OR_RETURN(made->client,
                         edl::ps_client::ParameterClient::Connect(std::move(parsed), made->clock));
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
    std::vector<edl::ps_client::TensorValues> values;
    for (const edl_ps_tensor& tensor : std::span(tensors, count)) {
      EDL_RETURN_IF_ERROR(client->CheckTensor(tensor.tensor));
      EDL_RETURN_IF_ERROR(CheckPointer(tensor.values, "values"));
      values.push_back({.tensor = tensor.tensor, .values = tensor.values});
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
    client->own.reset();
    return client->client->Restore(folder).status();
  };
  return CodeOf(restore());
}

const char* edl_ps_last_error(void) {  // NOLINT: as in the header
  return t_last_error.c_str();
}

void edl_ps_close(edl_ps* client) { delete client; }
