#include "elasticdl/native/records.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "elasticdl/native/status.h"

namespace edl::native {
namespace {

namespace nb = nanobind;

template <typename Value, typename Owner>
nb::object ArrayOwnedBy(std::unique_ptr<Owner> owner, const Value* data, size_t size) {
  // NumPy rejects a null pointer, even for an empty array.
  static const Value empty = 0;
  if (data == nullptr) data = &empty;
  const nb::capsule capsule(owner.release(),
                            [](void* that) noexcept { delete static_cast<Owner*>(that); });
  return nb::cast(nb::ndarray<nb::numpy, const Value>(data, {size}, capsule),
                  nb::rv_policy::reference);
}

Result<data::RecordSetOptions> OptionsFrom(const std::string& format, bool header,
                                           const std::string& index_dir) {
  data::RecordSetOptions options{.file = {.has_header = header}, .index_folder = index_dir};
  if (!format.empty()) {
    EDL_ASSIGN_OR_RETURN(options.file.format, data::ParseRecordFormat(format));
  }
  return options;
}

Result<data::RecordWriterOptions> OptionsFrom(const std::string& format,
                                              const std::string& compression,
                                              uint64_t max_chunk_bytes,
                                              uint64_t records_per_chunk) {
  data::RecordWriterOptions options{.records_per_chunk = records_per_chunk};
  EDL_ASSIGN_OR_RETURN(options.format, data::ParseRecordFormat(format));
  EDL_ASSIGN_OR_RETURN(options.compression, data::ParseCompression(compression));
  if (max_chunk_bytes > 0) options.max_chunk_bytes = max_chunk_bytes;
  return options;
}

}  // namespace

Records::Records(const std::string& path, const std::string& format, bool header,
                 const std::string& index_dir) {
  const data::RecordSetOptions options = OrRaiseRecordError(OptionsFrom(format, header, index_dir));
  auto opened = [&] {
    const nb::gil_scoped_release released;
    return data::RecordSet::Open(path, options);
  }();
  set_ = OrRaiseRecordError(std::move(opened));
}

std::vector<std::tuple<std::string, int64_t, int64_t>> Records::Files() const {
  std::vector<std::tuple<std::string, int64_t, int64_t>> files;
  for (const auto& file : set_->files()) files.emplace_back(file.path, file.start, file.count);
  return files;
}

data::RecordBatch Records::ReadBatch(int64_t first, int64_t end) {
  data::RecordBatch batch;
  const Status read = [&] {
    const nb::gil_scoped_release released;
    return set_->Read(first, end, batch);
  }();
  OrRaiseRecordError(read);
  return batch;
}

nb::list Records::Read(int64_t first, int64_t end) {
  const data::RecordBatch batch = ReadBatch(first, end);
  nb::list records;
  for (size_t i = 0; i < batch.size(); ++i) {
    records.append(nb::bytes(batch[i].data(), batch[i].size()));
  }
  return records;
}

nb::tuple Records::ReadFlat(int64_t first, int64_t end) {
  data::RecordBatch batch = ReadBatch(first, end);
  auto bytes = std::make_unique<data::ByteBuffer>(std::move(batch.bytes));
  auto offsets = std::make_unique<std::vector<int64_t>>(std::move(batch.offsets));
  const auto* const first_byte = reinterpret_cast<const uint8_t*>(bytes->data());
  const size_t size = bytes->size();
  const int64_t* const first_offset = offsets->data();
  const size_t count = offsets->size();
  return nb::make_tuple(ArrayOwnedBy(std::move(bytes), first_byte, size),
                        ArrayOwnedBy(std::move(offsets), first_offset, count));
}

Writer::Writer(std::string path, const std::string& format, const std::string& compression,
               uint64_t max_chunk_bytes, uint64_t records_per_chunk) {
  const data::RecordWriterOptions options =
      OrRaiseRecordError(OptionsFrom(format, compression, max_chunk_bytes, records_per_chunk));
  writer_ = OrRaiseRecordError(data::RecordWriter::Create(std::move(path), options));
}

void Writer::Write(const nb::bytes& record) {
  if (writer_ == nullptr) {
    OrRaiseRecordError(FailedPrecondition("the writer was closed by an error in its block"));
  }
  OrRaiseRecordError(writer_->Write({record.c_str(), record.size()}));
}

void Writer::Close() {
  if (writer_ != nullptr) OrRaiseRecordError(writer_->Close());
}

void DefineRecords(nb::module_& module) {
  nb::class_<Records>(module, "Records")
      .def(nb::init<const std::string&, const std::string&, bool, const std::string&>(),
           nb::arg("path"), nb::arg("format") = "", nb::arg("header") = false,
           nb::arg("index_dir") = "")
      .def("count", &Records::Count)
      .def("files", &Records::Files)
      .def("format", &Records::Format)
      .def("column_names", [](const Records& records) { return records.schema().column_names; })
      .def("dtype", [](const Records& records) { return records.schema().dtype; })
      .def("record_shape", [](const Records& records) { return records.schema().record_shape; })
      .def("read", &Records::Read, nb::arg("first"), nb::arg("end"))
      .def("read_flat", &Records::ReadFlat, nb::arg("first"), nb::arg("end"));
  nb::class_<Writer>(module, "RecordWriter")
      .def(nb::init<std::string, const std::string&, const std::string&, uint64_t, uint64_t>(),
           nb::arg("path"), nb::arg("format") = "recordio", nb::arg("compression") = "snappy",
           nb::arg("max_chunk_bytes") = 0, nb::arg("records_per_chunk") = 0)
      .def("write", &Writer::Write, nb::arg("record"))
      .def("close", &Writer::Close)
      .def("abandon", &Writer::Abandon);
}

}  // namespace edl::native
