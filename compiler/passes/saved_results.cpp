#include "compiler/passes/saved_results.h"
#include "compiler/ops/op_facts.h"

#include <algorithm>
#include <unordered_map>

namespace shardc {

/// "q_proj" of a product with model.layers.0.self_attn.q_proj.weight.
static auto ProjectionOf(ValueId matrix, const Plan& plan) -> std::string {
  constexpr std::string_view suffix = ".weight";
  const std::string& name = plan.values[matrix].name;
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
    if (FactsOf(*op).collective == CollectiveKind::ReduceScatter) {
      whole_of[CollectiveOf(*op)->from] = CollectiveOf(*op)->to;
    }
  }
  int num_products = 0;
  for (const Op* op : block) {
    switch (FactsOf(*op).work) {
      case Work::Product: {
        ++num_products;
        const ValueId out = ValueIn(op->body, "out");
        const auto whole = whole_of.find(out);
        if (is_torchtitan) {
          if (num_products % 2 == 1) {
            saved.push_back(out);
          }
          if (whole != whole_of.end()) {
            saved.push_back(whole->second);
          }
        } else if (is_named(ProjectionOf(ValueIn(op->body, "b"), plan))) {
          saved.push_back(whole == whole_of.end() ? out : whole->second);
        }
        break;
      }
      case Work::Attention:
        if (is_torchtitan || is_named("attention")) {
          saved.push_back(ValueIn(op->body, "y"));
          saved.push_back(ValueIn(op->body, "lse"));
        }
        break;
      case Work::Other: break;
    }
  }
  return saved;
}

}  // namespace shardc
