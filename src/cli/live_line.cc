#include "cli/live_line.h"

#include "cli/format.h"

namespace edl::cli {

void LiveLine::Show(const job::JobView& view) {
  for (const std::string& line : Changes(view_, view)) Print(line);
  view_ = view;
  const Time now = platform_.clock.Now();
  rate_.Add(now, RecordsOf(view_).done);
  const std::string line = ProgressLine(view_, rate_.PerSecond());
  if (platform_.terminal.live) {
    platform_.out << "\r" << Cut(line, platform_.terminal.columns() - 1) << "\x1b[K";
    platform_.out.flush();
    drawn_ = true;
  } else if (now - last_ >= kInterval) {
    last_ = now;
    Print(line);
  }
}

void LiveLine::Print(const std::string& line) {
  Clear();
  platform_.out << line << "\n";
  platform_.out.flush();
}

void LiveLine::Clear() {
  if (drawn_) platform_.out << "\r\x1b[K";
  drawn_ = false;
}

}  // namespace edl::cli
