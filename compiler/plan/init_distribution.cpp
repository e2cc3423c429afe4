#include "compiler/plan/init_distribution.h"

#include "compiler/base/check.h"

namespace shardc {

auto InitDistribution(const Parameter& parameter) -> std::optional<Distribution> {
  const auto rule = ParseExpr(parameter.init, ExprKind::Rule);
  CHECK(rule.ok(), "rule of {}: {}", parameter.name, parameter.init);
  return DistributionOf(rule.value);
}

}  // namespace shardc
