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

auto SetParameterVariables(const Dims& shape, int64_t fan_in, int64_t layer, ExprVariables& variables) -> void {
  CHECK(!shape.empty(), "a parameter without dims");
  double numel = 1;
  for (const int64_t dim : shape) {
    numel *= static_cast<double>(dim);
  }
  variables["numel"] = numel;
  variables["num_dims"] = static_cast<double>(shape.size());
  variables["fan_in"] = static_cast<double>(fan_in);
  variables["fan_out"] = static_cast<double>(shape.front());
  if (layer >= 0) {
    variables["layer"] = static_cast<double>(layer);
  } else {
    variables.erase("layer");
  }
}

auto InitDistribution(const Parameter& parameter) -> std::optional<Distribution> {
  return DistributionOf(RuleOf(parameter));
}

auto LoadedBlockOf(const Parameter& parameter) -> std::optional<LoadedBlock> {
  // Few rules begin so, and reading one takes longer than looking.
  auto block = parameter.init.starts_with("seed(") ? LoadedBlockOf(RuleOf(parameter)) : std::nullopt;
  const bool is_whole = block && block->indices.empty();
  bool is_in_order = block && block->indices.size() == parameter.shape.size();
  for (size_t i = 0; is_in_order && i < block->indices.size(); ++i) {
    is_in_order = block->indices[i].of == i;
  }
  return is_whole || is_in_order ? block : std::nullopt;
}

auto LoadedTensorOf(const Parameter& parameter) -> std::optional<std::string> {
  auto block = LoadedBlockOf(parameter);
  return block ? std::optional(std::move(block->tensor)) : std::nullopt;
}

auto RowInBase(const Plan& plan, const Parameter& parameter) -> std::optional<int64_t> {
  const auto block = parameter.trainable ? std::nullopt : LoadedBlockOf(parameter);
  const SeedTensor* const tensor = block ? plan.seed.Find(block->tensor) : nullptr;
  const bool holds = tensor != nullptr && (parameter.dtype == tensor->dtype || parameter.dtype == DType::F32);
  if (!holds || block->indices.empty()) {
    return holds ? std::optional<int64_t>(0) : std::nullopt;
  }
  const bool has_whole_rows =
      parameter.shape.size() == tensor->shape.size() &&
      std::equal(parameter.shape.begin() + 1, parameter.shape.end(), tensor->shape.begin() + 1, tensor->shape.end());
  return has_whole_rows ? std::optional(block->indices.front().begin) : std::nullopt;
}

auto TakesMoments(const Plan& plan, const Parameter& parameter) -> bool {
  return parameter.trainable && parameter.first_update < plan.seed.updates;
}

auto InTensor(const LoadedBlock& block, const Dims& tensor, const Parameter& parameter, BoxInterval elements)
    -> BoxInterval {
  if (block.indices.empty()) {
    return elements;
  }
  const bool is_matrix = parameter.shape.size() == 2;
  if (elements.is_whole_rows()) {
    elements.columns = {0, is_matrix ? parameter.shape[1] : 1};
  }
  const int64_t begin = block.indices[0].begin * elements.columns.size();
  elements.elements = {elements.elements.begin + begin, elements.elements.end + begin};
  if (is_matrix) {
    elements.row = tensor[1];
    elements.columns = {elements.columns.begin + block.indices[1].begin, elements.columns.end + block.indices[1].begin};
  }
  return elements;
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

auto ReadsSeed(const Plan& plan) -> std::vector<bool> {
  std::vector<bool> reads;
  InitSources sources(plan);
  const FindElementSource find = [&](std::string_view name) { return sources.Find(name); };
  for (const Parameter& parameter : plan.parameters) {
    const bool may_read =
        plan.seed.is_set() && parameter.init != RuleOfLoaded(parameter.name) && !LoadedTensorOf(parameter);
    const auto program = may_read ? MakeElementProgram(*sources.Find(parameter.name), find, sources.FindLoaded())
                                  : ExprResult<ElementProgram>();
    reads.push_back(!program.value.loads.empty());
  }
  return reads;
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
