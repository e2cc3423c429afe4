// 1. build the forward of a model of one block, or of none, on one token, in a plan that is thrown away
// 2. add up what its ops write; what belongs to the block counts once for each block of the model
//
// What holds of a family whatever its sizes are is asked of a model of the least sizes.

#include "compiler/model/estimate.h"

#include <algorithm>

namespace shardc {

static auto NumElementsOf(const ParameterSpecs& specs) -> double {
  double sum = 0;
  for (const ParameterSpec& spec : specs) {
    double elements = 1;
    for (const int64_t dim : spec.shape) {
      elements *= static_cast<double>(dim);
    }
    sum += elements;
  }
  return sum;
}

auto EstimateParameters(const ModelFamily& family, const ModelSizes& sizes) -> double {
  return NumElementsOf(family.outside(sizes)) + static_cast<double>(sizes.layers) * NumElementsOf(family.block(sizes));
}

namespace {

class ForwardEstimator {
 public:
  ForwardEstimator(const ModelFamily& family, const ModelSizes& sizes) : layers_(static_cast<double>(sizes.layers)) {
    ModelSizes of_one = sizes;
    of_one.layers = std::min<int64_t>(sizes.layers, 1);
    of_one.seq = 1;
    Emitter emitter(&plan_, &ops_, PassKind::Build);
    const auto value = [&](const ValueType& type) { return emitter.New(type, Category::Activations, ""); };
    std::unordered_map<std::string, ValueId> parameters;
    for (const ParameterSpec& spec : ParametersOf(family, of_one)) {
      parameters[spec.name] = value({DType::F32, spec.shape});
    }
    ForwardBuilder builder(&emitter, &parameters, value({DType::I32, {1, 1}}),
                           // Families that do not rotate leave it unread.
                           {.rope_table = value({DType::F32, {1, 2, sizes.head_dim / 2}}), .document_starts = {}},
                           false);
    output_ = family.forward(builder, of_one);
  }

  auto ops() const -> const std::vector<Op>& { return ops_; }

  auto Run() -> ForwardEstimate {
    for (const Op& op : ops_) {
      Add(op);
    }
    for (const HeadOperands& head : output_) {
      estimate_.elements += static_cast<double>(plan_.values[head.matrix].shape.front());
    }
    return std::move(estimate_);
  }

 private:
  auto Add(const Op& op) -> void {
    const double times = op.layer < 0 ? 1 : layers_;
    for (const Access& access : AccessesOf(op.body)) {
      // What is written over an operand takes no memory of its own.
      if (access.kind != AccessKind::Read && !access.kills.valid()) {
        estimate_.elements += times * static_cast<double>(NumElements(plan_.values[access.value].shape));
      }
    }
    if (FactsOf(op).work == Work::Attention) {
      estimate_.attention_width += times * static_cast<double>(NumElements(plan_.values[ValueIn(op.body, "y")].shape));
    }
    for (const ModelFact& fact : FactsOf(op).model) {
      const bool is_new = std::find(estimate_.cut.begin(), estimate_.cut.end(), fact.key) == estimate_.cut.end();
      if (fact.is_cut && is_new) {
        estimate_.cut.push_back(fact.key);
      }
    }
  }

  double layers_;
  Plan plan_;
  std::vector<Op> ops_;
  ModelOutput output_;
  ForwardEstimate estimate_;
};

}  // namespace

auto EstimateForward(const ModelFamily& family, const ModelSizes& sizes) -> ForwardEstimate {
  return ForwardEstimator(family, sizes).Run();
}

/// Of one block, and even where an op may ask for that.
static auto LeastSizes() -> ModelSizes {
  ModelSizes sizes;
  sizes.layers = sizes.heads = sizes.kv_heads = 1;
  sizes.hidden = sizes.head_dim = sizes.ffn = sizes.vocab = 2;
  return sizes;
}

auto NeedsEvenHeads(const ModelFamily& family) -> bool {
  const ForwardEstimator forward(family, LeastSizes());
  return std::ranges::any_of(forward.ops(), [](const Op& op) {
    return std::ranges::any_of(FactsOf(op).model,
                               [](const ModelFact& fact) { return fact.key == ModelKey::HeadDim && fact.is_even; });
  });
}

auto LeastOpsOfBlock(const ModelFamily& family, bool is_trained) -> double {
  const ModelSizes sizes = LeastSizes();
  const ForwardEstimator forward(family, sizes);
  int64_t count = std::ssize(family.block(sizes));
  for (const Op& op : forward.ops()) {
    if (op.layer < 0) {
      continue;
    }
    const OpFacts& facts = FactsOf(op);
    // A product has a gradient of each operand; that of a sum is the gradients of its terms.
    const int64_t backward = facts.work == Work::Product ? 2 : facts.meaning == Meaning::Sum ? 0 : 1;
    count += 1 + (is_trained ? backward : 0);
    for (const Access& access : AccessesOf(op.body)) {
      count += access.kind != AccessKind::Read && !access.kills.valid() ? 1 : 0;
    }
  }
  return static_cast<double>(count);
}

}  // namespace shardc
