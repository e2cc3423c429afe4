#include "compiler/passes/sample_loads.h"

#include "compiler/base/mapped.h"
#include "compiler/passes/pass.h"

namespace shardc {

auto SampleLoads::SampleExpr(int64_t per_step) const -> RankExpr {
  // An axis of one rank has the one coordinate 0: left out, so that the text says only what matters.
  const AxisSet axes = Spread(plan_.mesh, AxesSharing(Shared::Samples));
  RankExpr sample;
  int64_t samples = batch_.micro;
  for (size_t i = NumMeshAxes; i-- > 0;) {
    if (axes.Has(static_cast<Axis>(i))) {
      sample.axis[i] = samples;
      samples *= plan_.mesh.sizes[i];
    }
  }
  sample.repeat = samples;
  sample.step = per_step;
  return sample;
}

auto SampleLoads::EmitData(Emitter& emitter) -> void {
  emitter.set_origin(OriginOfTokens(recipe_));
  const auto host_buffer = [&](const std::string& name) {
    return plan_.buffers.Add({.name = name,
                              .arena = Arena::Host,
                              .category = Category::Data,
                              .bytes = Bytes{batch_.accumulate * NumElements(Type().shape) * SizeOf(DType::I32)},
                              .offset = -1});
  };
  tokens_buffer_ = host_buffer("tokens");
  for (LossTerm& term : terms_) {
    term.buffer = host_buffer(term.prefix + "targets");
  }
  if (plan_.data.splits_documents()) {
    starts_buffer_ = host_buffer("starts");
    positions_buffer_ = host_buffer("positions");
  }
  RankExpr sample = SampleExpr(batch_.global);
  if (batch_.accumulate > 1) {
    emitter.Emit(op::Repeat{.count = batch_.accumulate});
  } else {
    sample.repeat = 0;
  }
  EmitLoads(emitter, ViewMicrobatch(emitter), Split::Train, sample);
  if (batch_.accumulate > 1) {
    emitter.Emit(op::EndRepeat{});
  }
}

auto SampleLoads::ViewMicrobatch(Emitter& emitter) const -> SampleValues {
  RankExpr offset;
  if (batch_.accumulate > 1) {
    offset.repeat = NumElements(Type().shape) * SizeOf(DType::I32);
  }
  const auto view = [&](BufferId buffer, const std::string& name) {
    return emitter.View(buffer, offset, Type(), name);
  };
  SampleValues values{.tokens = view(tokens_buffer_, "tokens")};
  values.targets =
      Mapped<ValueId>(terms_, [&](const LossTerm& term) { return view(term.buffer, term.prefix + "targets"); });
  if (starts_buffer_.valid()) {
    values.starts = view(starts_buffer_, "starts");
    values.positions = view(positions_buffer_, "positions");
  }
  return values;
}

auto SampleLoads::EmitEval(Emitter& emitter) const -> SampleValues {
  const auto made = [&](const std::string& name) { return emitter.New(Type(), Category::Data, "eval." + name); };
  SampleValues values{.tokens = made("tokens")};
  values.targets = Mapped<ValueId>(terms_, [&](const LossTerm& term) { return made(term.prefix + "targets"); });
  if (plan_.data.splits_documents()) {
    values.starts = made("starts");
    values.positions = made("positions");
  }
  EmitLoads(emitter, values, Split::Eval, SampleExpr(0));
  return values;
}

auto SampleLoads::EmitLoads(Emitter& emitter, const SampleValues& values, Split split, const RankExpr& sample) const
    -> void {
  const Origin origin = emitter.origin();
  if (values.starts.valid()) {
    emitter.set_origin(OriginOf(recipe_.data.documents, "data.documents"));
    emitter.Emit(
        op::LoadDocuments{.starts = values.starts, .positions = values.positions, .split = split, .sample = sample});
    emitter.set_origin(origin);
  }
  emitter.Emit(op::LoadTokens{.starts = values.starts,
                              .tokens = values.tokens,
                              .targets = values.targets[0],
                              .split = split,
                              .sample = sample,
                              .head = terms_[0].head});
  for (size_t i = 1; i < terms_.size(); ++i) {
    // The op names the key whose file it reads, so that bad targets are not laid to the tokens.
    emitter.set_origin(terms_[i].files);
    emitter.Emit(op::LoadTargets{.starts = values.starts,
                                 .targets = values.targets[i],
                                 .split = split,
                                 .sample = sample,
                                 .head = terms_[i].head});
  }
  emitter.set_origin(origin);
}

}  // namespace shardc
