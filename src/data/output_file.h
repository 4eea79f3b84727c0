#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace edl::data {

// A file that is written from front to back, and gets its name when it is complete: until then it
// is a hidden file beside it, which the destructor removes. Confined.
class OutputFile {
 public:
  // Fails like open(2).
  static Result<OutputFile> Create(std::string path);
  OutputFile(OutputFile&& other) noexcept = default;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  const std::string& path() const { return path_; }
  // ResourceExhausted: the disk is full.
  Status Write(std::string_view bytes);
  // Makes the content durable and gives the file its name, which replaces an older file.
  Status Commit();

 private:
  OutputFile(std::string path, std::string temporary, FileDescriptor file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}

  std::string path_;
  std::string temporary_;
  FileDescriptor file_;  // not valid: committed, or moved from
};

}  // namespace edl::data
