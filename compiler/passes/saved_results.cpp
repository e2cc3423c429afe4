#include "compiler/passes/saved_results.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "compiler/ops/op_facts.h"

namespace shardc {

/// Returns "q_proj" for a product with the parameter that the family calls so.
static auto ProjectionOf(const Op& product, const Plan& plan, const ParameterSpecs& specs) -> std::string_view {
  for (const Access& access : AccessesOf(product.body)) {
    if (const ParameterId parameter = plan.values[access.value].role.parameter(); parameter.valid()) {
      return specs[static_cast<size_t>(parameter.index)].projection;
    }
  }
  return {};
}

static auto ResultsOf(const Op& op) -> std::vector<ValueId> {
  std::vector<ValueId> results;
  for (const Access& access : AccessesOf(op.body)) {
    if (access.kind != AccessKind::Read && !access.is_scratch) {
      results.push_back(access.value);
    }
  }
  return results;
}

/// Returns true if the policy keeps some results, of products and attention.
static auto KeepsResults(RecomputePolicy policy) -> bool {
  switch (policy) {
    case RecomputePolicy::None:
    case RecomputePolicy::Full: return false;
    case RecomputePolicy::Selective:
    case RecomputePolicy::TorchtitanSac: return true;
  }
  CHECK(false, "policy {}", static_cast<int>(policy));
}

auto SavedResults(const Plan& plan, const ParameterSpecs& specs, const std::vector<const Op*>& block,
                  const RecomputeSection& recompute) -> std::vector<ValueId> {
  const bool is_torchtitan = *recompute.policy == RecomputePolicy::TorchtitanSac;
  const auto is_named = [&](std::string_view word) {
    return std::find(recompute.save->begin(), recompute.save->end(), word) != recompute.save->end();
  };
  std::vector<ValueId> saved;
  if (!KeepsResults(*recompute.policy)) {
    return saved;
  }
  // If partial sums are made whole after a product, the result of the product is the whole sum.
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
        const ValueId out = ResultsOf(*op).front();
        const auto whole = whole_of.find(out);
        if (is_torchtitan) {
          if (num_products % 2 == 1) {
            saved.push_back(out);
          }
          if (whole != whole_of.end()) {
            saved.push_back(whole->second);
          }
        } else if (is_named(ProjectionOf(*op, plan, specs))) {
          saved.push_back(whole == whole_of.end() ? out : whole->second);
        }
        break;
      }
      case Work::Attention:
        if (is_torchtitan || is_named(SavedAttention)) {
          std::ranges::copy(ResultsOf(*op), std::back_inserter(saved));
        }
        break;
      case Work::Other: break;
    }
  }
  return saved;
}

}  // namespace shardc
