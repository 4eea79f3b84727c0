#include "cli/last_log_message.h"

#include <string_view>

#include "cli/format.h"

namespace edl::cli {

std::string LastLogMessage(Platform& platform, const JobFolder& folder) {
  const auto piece = platform.local.read_log(folder.logs(), "master", -4096, 4096);
  if (!piece.ok()) return "";
  std::string_view text = piece->text;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  text.remove_prefix(text.rfind('\n') + 1);
  // "[time] [LEVEL] [file:line:function] message"
  for (int field = 0; field < 3 && text.starts_with("["); ++field) {
    const size_t end = text.find("] ");
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 2);
  }
  return EscapeControlChars(text);
}

}  // namespace edl::cli
