#include "compiler/diag/render_order.h"

#include <algorithm>
#include <tuple>

namespace shardc {

auto InPlaceOrder(const Diagnostics& diagnostics) -> std::vector<const Diagnostic*> {
  std::vector<const Diagnostic*> sorted;
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    sorted.push_back(&diagnostic);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Diagnostic* a, const Diagnostic* b) {
    return std::tie(a->at.source, a->at.line, a->at.column) < std::tie(b->at.source, b->at.line, b->at.column);
  });
  return sorted;
}

}  // namespace shardc
