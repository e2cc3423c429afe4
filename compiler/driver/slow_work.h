// Words on stderr for who waits: none in the first second; then a line that rewrites itself, or off a terminal a plain
// line now and then.
#pragma once

#include <cstdio>
#include <string>

#include "compiler/base/units.h"
#include "compiler/data/scan_bar.h"

namespace shardc {

class SlowWork {
 public:
  explicit SlowWork(std::FILE* out) : out_(out), bar_(out) {}
  SlowWork(std::FILE* out, bool is_terminal) : out_(out), bar_(out, is_terminal) {}

  /// Takes the seconds since the work began.
  auto Tell(Seconds now, const std::string& words) -> void {
    if (now < next_) {
      return;
    }
    if (bar_.is_terminal()) {
      bar_.Show(words);
      return;
    }
    std::fputs((words + "\n").c_str(), out_);
    std::fflush(out_);
    next_ = now + Seconds{1};
  }
  /// Removes the line of a terminal.
  auto Clear() -> void { bar_.Clear(); }

 private:
  std::FILE* out_;
  ScanBar bar_;
  Seconds next_{1};
};

}  // namespace shardc
