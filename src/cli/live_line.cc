#include "cli/live_line.h"

#include "cli/format.h"

namespace edl::cli {

void LiveLine::Show(const job::JobView& view) {
  for (const std::string& line : Changes(view_, view)) Print(line);
  view_ = view;
  const Time now = platform_.clock.Now();
  rate_.Add(now, RecordsOf(view_).done);
  if (platform_.terminal.live) {
    const size_t columns = platform_.terminal.columns() - 1;
    platform_.out << "\r" << Cut(ProgressLine(view_, rate_.PerSecond(), columns), columns)
                  << "\x1b[K";
    platform_.out.flush();
    drawn_ = true;
  } else if (now - last_ >= kInterval) {
    last_ = now;
    Print(ProgressLine(view_, rate_.PerSecond()));
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
