#include "runtime/metrics/run_log.h"

#include <cstdio>

#include "compiler/base/printable.h"
#include "runtime/metrics/progress.h"

namespace shardc {

auto RunLog::Print(std::string_view lines) const -> void {
  PrintLog(stderr, Printable(lines));
  Keep(lines);
}

auto RunLog::Keep(std::string_view lines) const -> void {
  if (file_.is_open()) {
    static_cast<void>(AppendAll(file_, Printable(lines)));
  }
}

}  // namespace shardc
