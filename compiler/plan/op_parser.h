// The lines of a section of a plan's text: ops, and the repeats that bracket some of them.
#pragma once

#include "compiler/plan/line_parser.h"

namespace shardc {

class OpParser {
 public:
  /// Reads from `in`, which outlives it.
  explicit OpParser(LineParser* in) : in_(*in) {}

  /// Reads the lines from here on as those of `section`.
  auto Open(Section* section) -> void { section_ = section; }
  auto is_open() const -> bool { return section_ != nullptr; }
  /// Reads a line that begins with `first`; `}` ends the innermost repeat, or the section. False if it is rejected.
  /// Requires: a section is open.
  auto ParseLine(const Word& first) -> bool;

 private:
  /// Reads what an op line begins with, up to its fields.
  auto ParseKind(const Word& first, Op& op) -> bool;

  LineParser& in_;
  Section* section_ = nullptr;
  /// Repeats of the section that are open.
  int depth_ = 0;
};

}  // namespace shardc
