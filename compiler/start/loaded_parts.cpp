#include "compiler/start/loaded_parts.h"

#include <algorithm>
#include <iterator>

#include "compiler/mesh/mesh.h"
#include "compiler/plan/init_rule.h"

namespace shardc {

auto ModelVariables(const ModelSizes& sizes) -> ExprVariables {
  const auto as_double = [](int64_t n) { return static_cast<double>(n); };
  return {{"layers", as_double(sizes.layers)},     {"hidden", as_double(sizes.hidden)},
          {"heads", as_double(sizes.heads)},       {"kv_heads", as_double(sizes.kv_heads)},
          {"head_dim", as_double(sizes.head_dim)}, {"ffn", as_double(sizes.ffn)},
          {"vocab", as_double(sizes.vocab)},       {"seq", as_double(sizes.seq)}};
}

auto MadeRowsOf(const Manifest& seed, const AdapterSizes& of_peft) -> std::vector<published::MadeRow> {
  std::vector<published::MadeRow> rows = published::AdapterRowsOf(of_peft);
  if (seed.published) {
    std::ranges::move(published::MadeRowsOf(seed.run_id), std::back_inserter(rows));
  }
  return rows;
}

namespace {

/// The elements that a parameter takes of a tensor: an interval of each index.
using Box = std::vector<Interval>;

auto BoxOf(const LoadedBlock& block, const Dims& shape) -> Box {
  Box box;
  for (size_t i = 0; block.indices.empty() && i < shape.size(); ++i) {
    box.push_back({0, shape[i]});
  }
  for (const auto& [of, begin] : block.indices) {
    box.push_back({begin, begin + shape[of]});
  }
  return box;
}

/// Returns the number of elements, modulo 2^64.
auto VolumeOf(const Box& box) -> uint64_t {
  uint64_t volume = 1;
  for (const Interval& interval : box) {
    volume *= static_cast<uint64_t>(interval.size());
  }
  return volume;
}

/// Returns the shape of the tensor that boxes fill. CHECKs that each element is in one of them.
auto FilledBy(const std::vector<Box>& boxes, const std::string& tensor) -> Dims {
  Dims shape;
  Box whole;
  for (size_t i = 0; i < boxes.front().size(); ++i) {
    shape.push_back(std::ranges::max(boxes, {}, [&](const Box& box) { return box[i].end; })[i].end);
    whole.push_back({0, shape[i]});
  }
  uint64_t elements = 0;
  for (size_t b = 0; b < boxes.size(); ++b) {
    elements += VolumeOf(boxes[b]);
    for (size_t other = 0; other < b; ++other) {
      bool is_common = true;
      for (size_t i = 0; i < shape.size(); ++i) {
        is_common = is_common && !Intersect(boxes[b][i], boxes[other][i]).empty();
      }
      CHECK(!is_common, "two parameters are made of the same elements of {}", tensor);
    }
  }
  CHECK(elements == VolumeOf(whole), "parameters are made of {} elements of {}{}", elements, tensor, ToText(shape));
  return shape;
}

}  // namespace

auto PartsOf(const ParameterSpecs& specs, const ModelSizes& sizes, std::span<const published::MadeRow> made)
    -> LoadedParts {
  LoadedParts parts;
  std::map<std::string, std::vector<Box>, std::less<>> boxes;
  ExprVariables variables = ModelVariables(sizes);
  for (const ParameterSpec& spec : specs) {
    SetParameterVariables(spec.shape, spec.fan_in, spec.layer, variables);
    const std::string loading = published::LoadingRule(made, spec.name);
    auto rule = ReduceRule(ParseExpr(loading, ExprKind::Rule).value, variables);
    const auto block = rule.ok() ? LoadedBlockOf(rule.value) : std::nullopt;
    CHECK(block, "{} is made by the rule `{}`", spec.name, loading);
    boxes[block->tensor].push_back(BoxOf(*block, spec.shape));
    parts.rules.push_back(std::move(rule.value));
  }
  for (const auto& [tensor, of_tensor] : boxes) {
    parts.shapes[tensor] = FilledBy(of_tensor, tensor);
  }
  return parts;
}

}  // namespace shardc
