#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/file_scanner.h"

namespace edl::data {

// Finds the lines of a CSV or TSV file. A field that begins with a quote extends to the next single
// quote, over separators and line ends; "" in it is a quote. Lines end with \n or \r\n. Confined.
class CsvScanner {
 public:
  // A longer line is rejected: a quote that is not closed would otherwise take the rest of a large
  // file into memory.
  static constexpr size_t kMostLineBytes = size_t{64} << 20;

  // `file` outlives the scanner.
  CsvScanner(const InputFile& file, char separator)
      : file_(file), separator_(separator), scanner_(file) {}

  void Seek(uint64_t offset);
  // Where the next line begins.
  uint64_t position() const { return scanner_.position(); }

  // Reads the next line that is not empty, without its line end. False: there is none. The line is
  // valid until the next call; the scanner is then behind it. DataLoss: a quote is not closed, or
  // the line is too long.
  Result<bool> Next(std::string_view& line, uint64_t& offset);

 private:
  // The bytes of the next line with its line end, 0: more bytes are needed to find it.
  size_t LineLength(std::string_view window, bool is_rest);
  // The same for a line with quotes.
  size_t QuotedLineLength(std::string_view window, bool is_rest) const;
  Status NeedMore(std::string_view window);

  const InputFile& file_;
  const char separator_;
  FileScanner scanner_;
  uint64_t unquoted_until_ = 0;  // there is no quote between the position and this offset
};

// The fields of a line, without their quotes.
std::vector<std::string> SplitCsvLine(std::string_view line, char separator);

}  // namespace edl::data
