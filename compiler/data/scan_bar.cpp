#include "compiler/data/scan_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace shardc {

static auto CanRewriteLines(std::FILE* out) -> bool {
  const char* term = std::getenv("TERM");
  return isatty(fileno(out)) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

ScanBar::ScanBar(std::FILE* out) : ScanBar(out, CanRewriteLines(out)) {}

auto ScanBar::Tell(int64_t done, int64_t all) -> void {
  constexpr int64_t Width = 30;
  constexpr double MiB = 1 << 20;
  const double part = all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
  const auto filled = static_cast<size_t>(part * Width);
  Show(fmt::format("looking at token ids [{}{}] {:3.0f} %, {:.0f} of {:.0f} MiB", std::string(filled, '#'),
                   std::string(Width - filled, '.'), part * 100, static_cast<double>(done) / MiB,
                   static_cast<double>(all) / MiB));
}

auto ScanBar::Show(const std::string& words) -> void {
  if (!is_terminal_) {
    return;
  }
  const std::string line = "\r\x1b[K" + words;
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);
  is_shown_ = true;
}

auto ScanBar::Clear() -> void {
  if (is_shown_) {
    std::fputs("\r\x1b[K", out_);
    std::fflush(out_);
    is_shown_ = false;
  }
}

}  // namespace shardc
