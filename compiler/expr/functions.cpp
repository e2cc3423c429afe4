#include "compiler/expr/functions.h"

#include "compiler/base/check.h"
#include "compiler/expr/function_values.h"

namespace shardc {

auto EvaluateFunction(ExprFunction function, std::span<const double> arguments) -> std::optional<double> {
  return ValueIn(ComputeFunction(function, arguments));
}

auto IsInDomain(DistributionKind distribution, std::span<const double> arguments) -> bool {
  switch (distribution) {
    case DistributionKind::Constant: return true;
    case DistributionKind::Normal: return arguments[1] >= 0;
    case DistributionKind::TruncNormal: return arguments[1] > 0 && arguments[2] < arguments[3];
    case DistributionKind::Uniform: return arguments[0] < arguments[1];
  }
  CHECK(false, "kind {}", static_cast<int>(distribution));
}

}  // namespace shardc
