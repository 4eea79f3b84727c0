#pragma once

#include <memory>

#include "data/npy_header.h"
#include "data/record_file.h"

namespace edl::data {

// A .npy file in C order. Record i is the bytes of element i of the first axis.
class NpyFile final : public RecordFile {
 public:
  // Fails like ParseNpyHeader. DataLoss: the file has another size than the header says.
  // Unimplemented: its records have 0 bytes.
  static Result<std::unique_ptr<NpyFile>> Open(InputFile input);

 protected:
  // Needs only the header.
  Result<RecordIndex> Scan() override;
  Status ReadSome(const RecordIndex& index, uint64_t first, uint64_t end,
                  RecordBatch& out) override;

 private:
  NpyFile(InputFile input, NpyHeader header)
      : RecordFile(std::move(input), RecordFormat::kNpy), header_(std::move(header)) {}

  const NpyHeader header_;
};

}  // namespace edl::data
