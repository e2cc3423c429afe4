#include "compiler/cost/state_shares.h"

#include <algorithm>

#include "compiler/cost/fold.h"
#include "compiler/ops/communication.h"
#include "compiler/ops/unit_collectives.h"
#include "compiler/plan/header.h"

namespace shardc {

/// Returns what one rank sends in a step by the collectives for which `is_counted` is true.
static auto SentBy(const Plan& plan, const std::function<bool(const Op&)>& is_counted) -> Bytes {
  Bytes sent;
  for (const Communication& row : CommunicationOf(plan, SectionKind::Step, is_counted)) {
    sent += row.wire(plan.mesh);
  }
  return sent;
}

/// Returns true if the op gathers parameters that are trained, or are not.
static auto Gathers(const Plan& plan, const Op& op, bool trainable) -> bool {
  const auto gather = ParameterGatherOf(plan, op);
  const SubVectorId id = gather ? plan.values[gather->to].role.sub_vector() : SubVectorId();
  return id.valid() && plan.sub_vectors[id].trainable == trainable;
}

auto StateSharesOf(const Plan& plan) -> StateShares {
  StateShares shares;
  for (const Parameter& parameter : plan.parameters) {
    (parameter.trainable ? shares.trained : shares.frozen).num_elements += parameter.num_elements();
  }
  for (const SubVector& sub_vector : plan.sub_vectors) {
    StateShare& share = sub_vector.trainable ? shares.trained : shares.frozen;
    ForEachSlice(sub_vector, [&](ValueId slice) {
      if (slice.valid() && slice != sub_vector.gradient) {
        share.state += plan.values[slice].bytes();
      }
    });
  }
  for (StateShare* const share : {&shares.trained, &shares.frozen}) {
    const bool trainable = share == &shares.trained;
    share->parameters_sent = SentBy(plan, [&](const Op& op) { return Gathers(plan, op, trainable); });
  }
  shares.trained.gradients_sent = SentBy(plan, [&](const Op& op) {
    const auto collective = CollectiveOf(op);
    return collective && plan.buffers[plan.values[collective->from].buffer].category == Category::Gradients;
  });
  return shares;
}

auto AdapterUsesOf(const Plan& plan) -> std::vector<AdapterUse> {
  const AdapterSizes sizes = ResolveAdapters(KeysOf(plan));
  std::vector<AdapterUse> of_projections;
  for (const Parameter& parameter : plan.parameters) {
    const std::string weight = parameter.name.ends_with(DownSuffix) ? AdaptedBy(parameter.name) : "";
    const auto adapter = weight.empty() ? std::nullopt : AdapterOf(sizes, weight);
    if (!adapter) {
      continue;
    }
    // "model.layers.*.self_attn.q_proj"
    const std::string pattern = Numbered(weight.substr(0, weight.rfind('.'))).pattern;
    const std::vector<std::string> projection{pattern.substr(pattern.find("*.") + 2)};
    auto use = std::ranges::find_if(of_projections, [&](const AdapterUse& other) {
      return other.sizes == *adapter && other.projections == projection;
    });
    if (use == of_projections.end()) {
      use = of_projections.insert(use, {.sizes = *adapter, .blocks = {}, .projections = projection});
    }
    use->blocks.push_back(parameter.layer);
  }
  std::vector<AdapterUse> uses;
  for (AdapterUse& of_projection : of_projections) {
    const auto alike = std::ranges::find_if(uses, [&](const AdapterUse& use) {
      return use.sizes == of_projection.sizes && use.blocks == of_projection.blocks;
    });
    if (alike == uses.end()) {
      uses.push_back(std::move(of_projection));
    } else {
      alike->projections.push_back(of_projection.projections.front());
    }
  }
  return uses;
}

}  // namespace shardc
