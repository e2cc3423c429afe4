#include "compiler/diag/render_order.h"

#include <algorithm>
#include <tuple>

#include "compiler/base/mapped.h"

namespace shardc {

auto InPlaceOrder(const Diagnostics& diagnostics) -> std::vector<const Diagnostic*> {
  auto sorted = Mapped<const Diagnostic*>(diagnostics.all(), [](const Diagnostic& diagnostic) { return &diagnostic; });
  std::stable_sort(sorted.begin(), sorted.end(), [](const Diagnostic* a, const Diagnostic* b) {
    const auto place = [](const SourceRange& at) { return std::tuple(at.source, at.line < 1, at.line, at.column); };
    return place(a->at) < place(b->at);
  });
  return sorted;
}

}  // namespace shardc
