// Collects what a checkpoint has otherwise than a run.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

namespace shardc {

/// Collects "x is 4 in the checkpoint, 6 in this run".
class Differences {
 public:
  template <class T>
  auto Compare(std::string_view what, const T& there, const T& here) -> void {
    if (there != here) {
      found_.push_back(fmt::format("{} is {} in the checkpoint, {} in this run", what, there, here));
    }
  }
  auto empty() const -> bool { return found_.empty(); }
  auto Text() const -> std::string { return fmt::format("{}", fmt::join(found_, "; ")); }

 private:
  std::vector<std::string> found_;
};

}  // namespace shardc
