// A scan in progress, as one line of a terminal that rewrites itself.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace shardc {

class ScanBar {
 public:
  /// Says nothing if `out` is no terminal, or one that cannot rewrite a line (TERM=dumb).
  explicit ScanBar(std::FILE* out);
  ScanBar(std::FILE* out, bool is_terminal) : out_(out), is_terminal_(is_terminal) {}
  ScanBar(const ScanBar&) = delete;
  auto operator=(const ScanBar&) -> ScanBar& = delete;
  ~ScanBar() { Clear(); }

  /// Requires: 0 <= done <= all.
  auto Tell(int64_t done, int64_t all) -> void;
  /// Shows these words in the place of the line.
  auto Show(const std::string& words) -> void;
  auto is_terminal() const -> bool { return is_terminal_; }
  /// Removes the line.
  auto Clear() -> void;

 private:
  std::FILE* out_;
  bool is_terminal_;
  bool is_shown_ = false;
};

}  // namespace shardc
