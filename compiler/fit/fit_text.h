// The text of --fit for people.
#pragma once

#include <functional>
#include <string>

#include "compiler/fit/fit.h"

namespace shardc {

/// A part of the text, in the order of the text.
enum class FitPart : uint8_t {
  /// The verdict, and the recipe as it is as the first row of the table.
  Now,
  /// One for each knob.
  Row,
  Refused,
  /// The combination of keys.
  Keys,
  Ranks,
  Grown
};
/// Called when a part of the answers is known, with the index of a row; in the order of the text.
using FitListener = std::function<void(const FitUse& fit, FitPart part, size_t row)>;

/// Calls `function(part, row)` for each part of these answers, in the order of the text.
template <class Function>
auto ForEachPart(const FitUse& fit, const Function& function) -> void {
  function(FitPart::Now, 0);
  for (size_t row = 0; row < fit.knobs.size(); ++row) {
    function(FitPart::Row, row);
  }
  if (fit.has_recipe) {
    for (const FitPart part : {FitPart::Refused, FitPart::Keys, FitPart::Ranks, FitPart::Grown}) {
      function(part, 0);
    }
  }
}

/// Returns a part; empty if it has nothing to say.
auto FitPartText(const FitUse& fit, FitPart part, size_t row = 0) -> std::string;
/// Returns all parts.
auto RenderFitText(const FitUse& fit) -> std::string;

/// Returns lines on the combination, and on the ranks.
auto CheapestText(const FitUse& fit) -> std::string;
auto LeastRanksText(const FitUse& fit) -> std::string;
/// Returns a table of larger microbatches; empty if none was asked for.
auto GrownText(const FitUse& fit) -> std::string;
/// Returns "0.222 hours", "95.3 s".
auto HoursText(Seconds time) -> std::string;

}  // namespace shardc
