#include "compiler/passes/saved_results.h"

#include <algorithm>
#include <unordered_map>

namespace shardc {

/// "q_proj" of a product with model.layers.0.self_attn.q_proj.weight.
static auto ProjectionOf(const op::Matmul& product, const Plan& plan) -> std::string {
  constexpr std::string_view suffix = ".weight";
  const std::string& name = plan.values[product.b].name;
  if (!name.ends_with(suffix)) {
    return "";
  }
  const std::string module = name.substr(0, name.size() - suffix.size());
  return module.substr(module.rfind('.') + 1);
}

auto SavedResults(const Plan& plan, const std::vector<const Op*>& block, const RecomputeSection& recompute)
    -> std::vector<ValueId> {
  const bool is_torchtitan = *recompute.policy == "torchtitan-sac";
  const auto is_named = [&](std::string_view name) {
    return std::find(recompute.save->begin(), recompute.save->end(), name) != recompute.save->end();
  };
  std::vector<ValueId> saved;
  if (*recompute.policy != "selective" && !is_torchtitan) {
    return saved;
  }
  // Where partial sums are made whole behind a product, the result is what they are made to.
  std::unordered_map<ValueId, ValueId> whole_of;
  for (const Op* op : block) {
    if (const auto* scatter = op->As<op::ReduceScatter>()) {
      whole_of[scatter->full] = scatter->shard;
    }
  }
  int num_products = 0;
  for (const Op* op : block) {
    if (const auto* product = op->As<op::Matmul>()) {
      ++num_products;
      const auto whole = whole_of.find(product->out);
      if (is_torchtitan) {
        if (num_products % 2 == 1) {
          saved.push_back(product->out);
        }
        if (whole != whole_of.end()) {
          saved.push_back(whole->second);
        }
      } else if (is_named(ProjectionOf(*product, plan))) {
        saved.push_back(whole == whole_of.end() ? product->out : whole->second);
      }
    } else if (const auto* attention = op->As<op::Attention>(); attention && (is_torchtitan || is_named("attention"))) {
      saved.push_back(attention->y);
      saved.push_back(attention->lse);
    }
  }
  return saved;
}

}  // namespace shardc
