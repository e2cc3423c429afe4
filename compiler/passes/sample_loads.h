// The samples of a plan: the ops that load them, and the values that hold them. Those of a step are loaded ahead, each
// microbatch to a place of its own in host memory; those of an evaluation as it comes to them.
#pragma once

#include <vector>

#include "compiler/check/check_recipe.h"
#include "compiler/ops/emitter.h"
#include "compiler/passes/loss_terms.h"

namespace shardc {

/// Values of the samples of a microbatch.
struct SampleValues {
  ValueId tokens;
  /// Targets of each term of the loss.
  std::vector<ValueId> targets;
  /// Values that say where documents start, and positions in them. Invalid where a sample is one document.
  ValueId starts;
  ValueId positions;
};

class SampleLoads {
 public:
  /// Requires: the plan has its header, and all outlive this. `terms`: the model's own head first.
  SampleLoads(Plan* plan, const Recipe* recipe, const BatchSizes& batch, std::vector<LossTerm>* terms)
      : plan_(*plan), recipe_(*recipe), batch_(batch), terms_(*terms) {}

  /// Emits section `data`, and makes the host memory of a step, that of the terms' targets among it.
  auto EmitData(Emitter& emitter) -> void;
  /// Makes views of the microbatch of the step that the loop is at. Requires: EmitData.
  auto ViewMicrobatch(Emitter& emitter) const -> SampleValues;
  /// Makes values of a batch of the evaluation, and emits the ops that load it.
  auto EmitEval(Emitter& emitter) const -> SampleValues;
  /// Returns the type of one rank's tokens, or targets, of a microbatch.
  auto Type() const -> ValueType { return {DType::I32, {plan_.data.seq, batch_.micro}}; }

 private:
  /// Returns the number of the first sample of a rank and repeat, with `per_step` samples per step.
  auto SampleExpr(int64_t per_step) const -> RankExpr;
  auto EmitLoads(Emitter& emitter, const SampleValues& values, Split split, const RankExpr& sample) const -> void;

  Plan& plan_;
  const Recipe& recipe_;
  BatchSizes batch_;
  std::vector<LossTerm>& terms_;
  BufferId tokens_buffer_;
  /// Set if samples have documents.
  BufferId starts_buffer_;
  BufferId positions_buffer_;
};

}  // namespace shardc
