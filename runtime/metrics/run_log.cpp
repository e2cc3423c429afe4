#include "runtime/metrics/run_log.h"

#include "compiler/base/printable.h"

namespace shardc {

auto PrintLog(std::FILE* out, std::string_view text) -> void {
  [[maybe_unused]] const size_t written = std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

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
