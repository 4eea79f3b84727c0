#include "wire/messages.h"

#include <algorithm>
#include <limits>

#include "wire/meta.h"
#include "wire/placement.h"

namespace edl::wire {
namespace {

// Each layout is defined once, as a list of fields that a writer or a reader visits.

struct Writing {
  MetaWriter& writer;

  template <typename Number>
  void operator()(const Number& number) {
    writer.Add(number);
  }
  void operator()(const bool& value) { writer.Add(static_cast<uint8_t>(value)); }
  void operator()(const std::string& text) { writer.AddText(text); }
  template <typename Enum>
  void Choice(const Enum& value, Enum /*last*/) {
    writer.Add(static_cast<uint8_t>(value));
  }
  template <typename Item, typename Fields>
  void List(const std::vector<Item>& items, size_t /*bytes*/, const Fields& fields) {
    writer.Add(static_cast<uint32_t>(items.size()));
    for (const Item& item : items) fields(*this, item);
  }
};

struct Reading {
  MetaReader& reader;
  bool ok = true;

  template <typename Number>
  void operator()(Number& number) {
    number = reader.Get<Number>();
  }
  void operator()(bool& value) {
    const auto byte = reader.Get<uint8_t>();
    ok = ok && byte <= 1;
    value = byte == 1;
  }
  void operator()(std::string& text) { text = reader.GetText(); }
  template <typename Enum>
  void Choice(Enum& value, Enum last) {
    const auto byte = reader.Get<uint8_t>();
    ok = ok && byte <= static_cast<uint8_t>(last);
    value = ok ? static_cast<Enum>(byte) : Enum{};
  }
  // `bytes` is the least size of an item: a wrong count allocates no memory.
  template <typename Item, typename Fields>
  void List(std::vector<Item>& items, size_t bytes, const Fields& fields) {
    const auto count = reader.Get<uint32_t>();
    if (count > reader.left() / bytes) {
      ok = false;
      return;
    }
    items.resize(count);
    for (Item& item : items) fields(*this, item);
  }
};

template <typename Visit, typename Key>
void FieldsOfShard(Visit& visit, Key& key) {
  visit(key.ledger);
  visit(key.dataset);
  visit(key.generation);
  visit(key.epoch);
  visit(key.ordinal);
}

constexpr auto kItself = [](auto& visit, auto& value) { visit(value); };
constexpr auto kTableEntry = [](auto& visit, auto& share) {
  visit(share.table);
  visit(share.ids);
  visit(share.learning_rate);
};
constexpr auto kTensorEntry = [](auto& visit, auto& share) {
  visit(share.tensor);
  visit(share.learning_rate);
};

// `Message` is const for a writer and not for a reader; `like` only selects the overload.
template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const Hello& /*like*/) {
  visit(message.token);
  visit(message.caller);
  visit(message.lane_in_server);
  visit(message.lane_in_job);
  visit(message.lanes_in_job);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const Welcome& /*like*/) {
  visit(message.incarnation);
  visit(message.lanes);
  visit(message.servers);
  visit(message.index);
  visit(message.progress_bytes);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const Declare& /*like*/) {
  visit(message.text);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const Put& /*like*/) {
  visit.List(message.tensors, sizeof(uint32_t), kItself);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const PutAnswer& /*like*/) {
  visit(message.taken);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const Pull& /*like*/) {
  visit.Choice(message.unknown, Pull::Unknown::kTell);
  visit.List(message.tables, 12, kTableEntry);
  visit.List(message.tensors, sizeof(uint32_t), kItself);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const PullAnswer& /*like*/) {
  visit(message.version);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const Open& /*like*/) {
  visit(message.lease);
  FieldsOfShard(visit, message.shard);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const OpenAnswer& /*like*/) {
  visit(message.watermark);
  visit(message.ps_epoch);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const Push& /*like*/) {
  visit(message.lease);
  FieldsOfShard(visit, message.shard);
  visit(message.batch);
  visit(message.refused);
  visit(message.version);
  visit.List(message.tables, 12, kTableEntry);
  visit.List(message.tensors, 8, kTensorEntry);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const PushAnswer& /*like*/) {
  visit.Choice(message.outcome, PushOutcome::kStale);
  visit(message.watermark);
  visit(message.version);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const Save& /*like*/) {
  visit(message.path);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const SaveAnswer& /*like*/) {
  visit(message.bytes);
  visit(message.seconds);
  visit(message.longest_pause_seconds);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const Restore& /*like*/) {
  visit(message.incarnation);
  visit(message.ps_epoch);
  visit(message.with_watermarks);
  visit.List(message.paths, sizeof(uint32_t), kItself);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const RestoreAnswer& /*like*/) {
  visit(message.rows);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const Serve& /*like*/) {
  visit(message.incarnation);
  visit(message.ps_epoch);
  visit(message.may_push);
  visit(message.floor);
  visit(message.covered);
  visit(message.released);
}

template <typename Visit, typename Message>
void Fields(Visit& visit, Message& message, const StateAnswer& /*like*/) {
  visit(message.ps_epoch);
  visit(message.rows);
  visit(message.bytes);
  visit(message.evicted);
  visit(message.rows_pulled);
  visit(message.rows_pushed);
  visit(message.opens_waiting);
  visit(message.leaving);
  visit(message.least_contributed);
  visit(message.most_contributed);
  visit(message.saved_bytes);
  visit(message.restored_bytes);
}

template <typename Message>
std::string EncodeFields(const Message& message) {
  MetaWriter writer;
  Writing writing{writer};
  Fields(writing, message, message);
  return std::move(writer).text();
}

template <typename Message>
Status DecodeFields(std::span<const std::byte> meta, Message& message, std::string_view name) {
  MetaReader reader(meta);
  Reading reading{reader};
  Fields(reading, message, message);
  if (reading.ok && reader.AtEnd()) return Ok();
  return InvalidArgument("the meta part of {} bytes is not a valid {}", meta.size(), name);
}

}  // namespace

size_t ShardKeyHash::operator()(const ShardKey& key) const {
  uint64_t hash = 0;
  for (const uint64_t part : {key.ledger.value(), static_cast<uint64_t>(key.dataset.value()),
                              uint64_t{key.generation} << 32 | key.epoch, key.ordinal}) {
    hash = HashOf(static_cast<int64_t>(hash * 31 + part));
  }
  return hash;
}

std::string RingName(uint16_t port) { return fmt::format("elasticdl-ps-{}", port); }

std::string Encode(const Hello& message) { return EncodeFields(message); }
std::string Encode(const Welcome& message) { return EncodeFields(message); }
std::string Encode(const Declare& message) { return EncodeFields(message); }
std::string Encode(const Put& message) { return EncodeFields(message); }
std::string Encode(const PutAnswer& message) { return EncodeFields(message); }
std::string Encode(const Pull& message) { return EncodeFields(message); }
std::string Encode(const PullAnswer& message) { return EncodeFields(message); }
std::string Encode(const Open& message) { return EncodeFields(message); }
std::string Encode(const OpenAnswer& message) { return EncodeFields(message); }
std::string Encode(const Push& message) { return EncodeFields(message); }
std::string Encode(const PushAnswer& message) { return EncodeFields(message); }

std::string Encode(const Save& message) { return EncodeFields(message); }
std::string Encode(const SaveAnswer& message) { return EncodeFields(message); }
std::string Encode(const Restore& message) { return EncodeFields(message); }
std::string Encode(const RestoreAnswer& message) { return EncodeFields(message); }
std::string Encode(const Serve& message) { return EncodeFields(message); }
std::string Encode(const StateAnswer& message) { return EncodeFields(message); }

std::string Encode(const Status& failure) {
  MetaWriter writer;
  writer.Add(static_cast<uint32_t>(failure.code()));
  writer.AddText(failure.message());
  return std::move(writer).text();
}

Status Decode(std::span<const std::byte> meta, Hello& message) {
  return DecodeFields(meta, message, "Hello");
}
Status Decode(std::span<const std::byte> meta, Welcome& message) {
  return DecodeFields(meta, message, "answer to Hello");
}
Status Decode(std::span<const std::byte> meta, Declare& message) {
  return DecodeFields(meta, message, "Declare");
}
Status Decode(std::span<const std::byte> meta, Put& message) {
  return DecodeFields(meta, message, "Put");
}
Status Decode(std::span<const std::byte> meta, PutAnswer& message) {
  return DecodeFields(meta, message, "answer to Put");
}
Status Decode(std::span<const std::byte> meta, Pull& message) {
  return DecodeFields(meta, message, "Pull");
}
Status Decode(std::span<const std::byte> meta, PullAnswer& message) {
  return DecodeFields(meta, message, "answer to Pull");
}
Status Decode(std::span<const std::byte> meta, Open& message) {
  return DecodeFields(meta, message, "Open");
}
Status Decode(std::span<const std::byte> meta, OpenAnswer& message) {
  return DecodeFields(meta, message, "answer to Open");
}
Status Decode(std::span<const std::byte> meta, Push& message) {
  return DecodeFields(meta, message, "Push");
}
Status Decode(std::span<const std::byte> meta, PushAnswer& message) {
  return DecodeFields(meta, message, "answer to Push");
}

Status Decode(std::span<const std::byte> meta, Save& message) {
  return DecodeFields(meta, message, "Save");
}
Status Decode(std::span<const std::byte> meta, SaveAnswer& message) {
  return DecodeFields(meta, message, "answer to Save");
}
Status Decode(std::span<const std::byte> meta, Restore& message) {
  return DecodeFields(meta, message, "Restore");
}
Status Decode(std::span<const std::byte> meta, RestoreAnswer& message) {
  return DecodeFields(meta, message, "answer to Restore");
}
Status Decode(std::span<const std::byte> meta, Serve& message) {
  return DecodeFields(meta, message, "Serve");
}
Status Decode(std::span<const std::byte> meta, StateAnswer& message) {
  return DecodeFields(meta, message, "answer to State");
}

Status DecodeRefusal(std::span<const std::byte> meta) {
  MetaReader reader(meta);
  const auto code = reader.Get<uint32_t>();
  const std::string_view message = reader.GetText();
  constexpr auto kLast = static_cast<uint32_t>(Code::kUnauthenticated);
  if (!reader.AtEnd() || code == 0 || code > kLast) {
    return Internal("a refusal with {} bytes cannot be decoded", meta.size());
  }
  return {static_cast<Code>(code), std::string(message)};
}

Result<std::span<const std::byte>> TensorReader::TakeBytes(size_t values, size_t size) {
  if (values > rest_.size() / size) {
    return InvalidArgument("a frame has {} bytes left, too few for {} values of {} bytes",
                           rest_.size(), values, size);
  }
  const std::span<const std::byte> bytes = rest_.first(values * size);
  rest_ = rest_.subspan(std::min(AlignedUp(bytes.size()), rest_.size()));
  return bytes;
}

Status TensorReader::End() const {
  if (rest_.empty()) return Ok();
  return InvalidArgument("a frame has {} bytes more than its message describes", rest_.size());
}

}  // namespace edl::wire
