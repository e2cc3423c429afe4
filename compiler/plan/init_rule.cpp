#include "compiler/plan/init_rule.h"

#include <algorithm>
#include <utility>

#include "compiler/base/check.h"

namespace shardc {

static auto RuleOf(const Parameter& parameter) -> Expr {
  const auto read = ParseExpr(parameter.init, ExprKind::Rule);
  CHECK(read.ok(), "rule of {}: {}", parameter.name, parameter.init);
  auto rule = ReduceRule(read.value, {});
  CHECK(rule.ok(), "rule of {}: {}", parameter.name, parameter.init);
  return std::move(rule.value);
}

auto InitDistribution(const Parameter& parameter) -> std::optional<Distribution> {
  return DistributionOf(RuleOf(parameter));
}

auto LoadedTensorOf(const Parameter& parameter) -> std::optional<std::string> {
  // Few rules begin so, and reading one takes longer than looking.
  return parameter.init.starts_with("seed(") ? LoadedTensorOf(RuleOf(parameter)) : std::nullopt;
}

auto ConversionsOf(const Plan& plan) -> std::string {
  std::map<std::pair<DType, DType>, int64_t> counts;
  for (const Parameter& parameter : plan.parameters) {
    const auto name = LoadedTensorOf(parameter);
    const SeedTensor* const tensor = name ? plan.seed.Find(*name) : nullptr;
    if (tensor != nullptr && tensor->dtype != parameter.dtype) {
      ++counts[{tensor->dtype, parameter.dtype}];
    }
  }
  std::string text;
  for (const auto& [types, count] : counts) {
    const auto& [from, to] = types;
    text += fmt::format("{}{} {} from {} to {}", text.empty() ? " (" : ", ", count,
                        to == DType::F32 ? "widened" : "rounded", ToText(from), ToText(to));
  }
  return text.empty() ? text : text + ")";
}

auto InitSources::FindLoaded() -> FindLoadedShape {
  if (!plan_.seed.is_set()) {
    return {};
  }
  return [this](std::string_view name) -> const std::vector<int64_t>* {
    const SeedTensor* const tensor = plan_.seed.Find(name);
    if (tensor == nullptr) {
      return nullptr;
    }
    auto& shape = shapes_[tensor->name];
    shape.assign(tensor->shape.begin(), tensor->shape.end());
    return &shape;
  };
}

auto InitSources::Find(std::string_view name) -> const ElementSource* {
  const auto known = sources_.find(name);
  if (known != sources_.end()) {
    return &known->second;
  }
  const auto found = std::find_if(plan_.parameters.begin(), plan_.parameters.end(),
                                  [&](const Parameter& parameter) { return parameter.name == name; });
  if (found == plan_.parameters.end()) {
    return nullptr;
  }
  ElementSource source{.rule = RuleOf(*found),
                       .shape = std::vector<int64_t>(found->shape.begin(), found->shape.end()),
                       .key = RandomKey(plan_.run.init_seed, found->name),
                       .is_bfloat16 = found->dtype == DType::BF16};
  return &sources_.emplace(found->name, std::move(source)).first->second;
}

}  // namespace shardc
