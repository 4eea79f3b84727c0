#include "data/npy_header.h"

#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "base/text.h"
#include "data/little_endian.h"

namespace edl::data {
namespace {

constexpr std::string_view kMagicOfNpy = "\x93NUMPY";

// Reads the Python dictionary of a header: keys are strings; values are strings, True, False and
// tuples of integers. Confined.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : rest_(text) {}

  bool Take(char expected) {
    rest_ = Trim(rest_);
    if (rest_.empty() || rest_.front() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<std::string_view> String() {
    rest_ = Trim(rest_);
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::optional<bool> Boolean() {
    rest_ = Trim(rest_);
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true},
                                      std::pair<std::string_view, bool>{"False", false}}) {
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    }
    return std::nullopt;
  }

  std::optional<std::vector<int64_t>> Tuple() {
    if (!Take('(')) return std::nullopt;
    std::vector<int64_t> numbers;
    while (!Take(')')) {
      rest_ = Trim(rest_);
      int64_t number = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      if (error != std::errc() || number < 0) return std::nullopt;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      numbers.push_back(number);
      if (!Take(',')) {
        if (!Take(')')) return std::nullopt;
        break;
      }
    }
    return numbers;
  }

  bool IsAtList() {
    rest_ = Trim(rest_);
    return rest_.starts_with('[');
  }
  bool IsAtEnd() { return Trim(rest_).empty(); }

 private:
  std::string_view rest_;
};

// The size of an element, such as 4 for "<f4". nullopt: not a dtype.
std::optional<uint64_t> ItemBytesOf(std::string_view dtype) {
  constexpr std::string_view kOrders = "<>|=";
  constexpr std::string_view kKinds = "biufcmMSUV";
  if (dtype.size() < 3 || kOrders.find(dtype[0]) == std::string_view::npos ||
      kKinds.find(dtype[1]) == std::string_view::npos) {
    return std::nullopt;
  }
  uint32_t number = 0;
  const char* const end = dtype.data() + dtype.size();
  const auto [rest, error] = std::from_chars(dtype.data() + 2, end, number);
  const bool has_unit = dtype[1] == 'm' || dtype[1] == 'M';
  if (error != std::errc() || (rest != end && !(has_unit && *rest == '['))) return std::nullopt;
  constexpr uint64_t kBytesOfUnicode = 4;
  return dtype[1] == 'U' ? kBytesOfUnicode * number : number;
}

Status Malformed(std::string_view why) {
  return DataLoss("the header of a NumPy array is malformed: {}", why);
}

Status ReadValue(std::string_view key, DictReader& reader, NpyHeader& header) {
  if (key == "descr") {
    if (reader.IsAtList()) {
      return Unimplemented(
          "arrays with named fields are not supported; save each field as an array of its own");
    }
    const auto dtype = reader.String();
    if (!dtype.has_value()) return Malformed("'descr' is not a string");
    if (dtype->ends_with("O")) return Unimplemented("arrays of Python objects are not supported");
    const auto item_bytes = ItemBytesOf(*dtype);
    if (!item_bytes.has_value()) return Malformed("'descr' is not the type of an element");
    header.dtype = *dtype;
    header.item_bytes = *item_bytes;
    return Ok();
  }
  if (key == "fortran_order") {
    const auto fortran = reader.Boolean();
    if (!fortran.has_value()) return Malformed("'fortran_order' is neither True nor False");
    if (*fortran) {
      return Unimplemented(
          "arrays in Fortran order are not supported; save numpy.ascontiguousarray(array)");
    }
    return Ok();
  }
  if (key != "shape") return Malformed("an unknown key");
  auto shape = reader.Tuple();
  if (!shape.has_value()) return Malformed("'shape' is not a tuple of sizes");
  if (shape->empty()) return Unimplemented("an array without an axis has no records");
  header.shape = *std::move(shape);
  return Ok();
}

Status ReadDict(std::string_view text, NpyHeader& header) {
  DictReader reader(text);
  if (!reader.Take('{')) return Malformed("it is not a dictionary");
  constexpr std::array<std::string_view, 3> kKeys = {"descr", "fortran_order", "shape"};
  std::array<bool, kKeys.size()> seen{};
  while (!reader.Take('}')) {
    const auto key = reader.String();
    if (!key.has_value() || !reader.Take(':')) return Malformed("a key is missing");
    EDL_RETURN_IF_ERROR(ReadValue(*key, reader, header));
    for (size_t i = 0; i < kKeys.size(); ++i) seen[i] = seen[i] || kKeys[i] == *key;
    if (!reader.Take(',')) {
      if (!reader.Take('}')) return Malformed("a comma is missing");
      break;
    }
  }
  for (size_t i = 0; i < kKeys.size(); ++i) {
    if (!seen[i]) return Malformed(fmt::format("it has no '{}'", kKeys[i]));
  }
  return reader.IsAtEnd() ? Ok() : Malformed("something follows the dictionary");
}

}  // namespace

Result<NpyHeader> ParseNpyHeader(std::string_view bytes) {
  constexpr size_t kVersionAt = kMagicOfNpy.size();
  constexpr size_t kLengthAt = kVersionAt + 2;
  if (!bytes.starts_with(kMagicOfNpy)) return Malformed("the file does not begin with \\x93NUMPY");
  if (bytes.size() < kLengthAt + sizeof(uint32_t)) return Malformed("the file is too short");
  const int version = static_cast<unsigned char>(bytes[kVersionAt]);
  if (version < 1 || version > 3) return Malformed(fmt::format("unknown version {}", version));
  const size_t length_bytes = version == 1 ? sizeof(uint16_t) : sizeof(uint32_t);
  const uint64_t length = version == 1 ? Load<uint16_t>(bytes.data() + kLengthAt)
                                       : Load<uint32_t>(bytes.data() + kLengthAt);
  const size_t text_at = kLengthAt + length_bytes;
  if (length > bytes.size() - text_at) return Malformed("the file or the limit ends before it");
  NpyHeader header{.header_bytes = text_at + length};
  EDL_RETURN_IF_ERROR(ReadDict(bytes.substr(text_at, length), header));
  header.record_bytes = header.item_bytes;
  for (size_t axis = 1; axis < header.shape.size(); ++axis) {
    if (__builtin_mul_overflow(header.record_bytes, static_cast<uint64_t>(header.shape[axis]),
                               &header.record_bytes)) {
      return Malformed("the shape is too large");
    }
  }
  return header;
}

}  // namespace edl::data
