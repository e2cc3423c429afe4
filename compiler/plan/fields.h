// The fields of every line of a plan text except ops, once for the printer, the parser and the JSON. A visitor has
// Field(name, x): always written; Default(name, x, value): left out where x is that value; Path(name, x): a text that
// does not count for the plan's identity.
#pragma once

#include <concepts>

#include "compiler/plan/plan.h"

namespace shardc {

template <class T, class Plain>
concept MaybeConst = std::same_as<std::remove_const_t<T>, Plain>;

template <MaybeConst<DataSource> T, class Visitor>
auto VisitLine(T& data, Visitor&& visitor) -> void {
  visitor.Field("format", data.format);
  visitor.Field("order", data.order);
  visitor.Field("seed", data.seed);
  visitor.Field("eval_tokens", data.eval_tokens);
  visitor.Field("vocab", data.vocab);
  visitor.Field("seq", data.seq);
  visitor.Default("synthetic", data.synthetic, Synthetic::None);
  visitor.Default("eval_file_tokens", data.eval_file_tokens, int64_t{0});
  visitor.Default("eval_file_samples", data.eval_file_samples, int64_t{0});
  visitor.Default("documents", data.documents, Documents::Stream);
  visitor.Default("pack", data.pack, Pack::Stream);
  visitor.Default("document_end", data.document_end, int64_t{-1});
  visitor.Default("too_long", data.too_long, TooLong::Refuse);
  visitor.Default("max_lost", data.max_lost, DataSource::DefaultMaxLost);
}

template <MaybeConst<TokenSource> T, class Visitor>
auto VisitLine(T& source, Visitor&& visitor) -> void {
  visitor.Field("weight", source.weight);
  visitor.Default("first_sample", source.first_sample, int64_t{0});
  visitor.Default("document_end", source.document_end, int64_t{-1});
  visitor.Default("too_long", source.too_long, TooLong::Refuse);
}

template <MaybeConst<RunSettings> T, class Visitor>
auto VisitLine(T& run, Visitor&& visitor) -> void {
  visitor.Field("run_id", run.run_id);
  visitor.Path("run_dir", run.run_dir);
  visitor.Path("checkpoint_dir", run.checkpoint_dir);
  visitor.Default("checkpoint_keep", run.checkpoint_keep, RunSettings::DefaultCheckpointKeep);
  visitor.Field("steps", run.steps);
  visitor.Default("first_step", run.first_step, int64_t{0});
  visitor.Default("max_minutes", run.max_minutes, 0.0);
  visitor.Field("tokens_per_step", run.tokens_per_step);
  visitor.Field("micro_batch", run.micro_batch);
  visitor.Field("accumulate", run.accumulate);
  visitor.Field("eval_batches", run.eval_batches);
  visitor.Field("comm", run.comm);
  visitor.Field("init_seed", run.init_seed);
  visitor.Default("optimizer", run.optimizer, Optimizer::Adamw);
  visitor.Default("scan", run.scan_bytes, RunSettings::DefaultScanBytes);
  visitor.Default("peak_flops", run.peak_flops, 0.0);
  visitor.Default("attention_workspace", run.attention_workspace, RunSettings::DefaultAttentionWorkspace);
  const RunSettings defaults;
#define RUN_KEY(section, name, ...) visitor.Default(#name, run.name, defaults.name);
#include "schemas/recipe_keys.def"
}

template <MaybeConst<Seed> T, class Visitor>
auto VisitLine(T& seed, Visitor&& visitor) -> void {
  visitor.Default("format", seed.format, SeedFormat::Checkpoint);
  visitor.Field("run_id", seed.run_id);
  visitor.Field("step", seed.step);
  visitor.Field("manifest", seed.manifest);
  visitor.Default("adapter", seed.adapter, std::string{});
  visitor.Default("updates", seed.updates, int64_t{0});
  visitor.Default("steps_before", seed.steps_before, int64_t{0});
  visitor.Path("path", seed.path);
  visitor.Path("adapter_path", seed.adapter_path);
}

template <MaybeConst<TargetHead> T, class Visitor>
auto VisitLine(T& head, Visitor&& visitor) -> void {
  visitor.Field("vocab", head.vocab);
  visitor.Default("own", head.is_own, false);
}

template <MaybeConst<OptimizerGroup> T, class Visitor>
auto VisitLine(T& group, Visitor&& visitor) -> void {
  visitor.Field("weight_decay", group.weight_decay);
  visitor.Field("lr_scale", group.lr_scale);
}

template <MaybeConst<Parameter> T, class Visitor>
auto VisitLine(T& parameter, Visitor&& visitor) -> void {
  visitor.Default("layer", parameter.layer, int64_t{-1});
  visitor.Field("trainable", parameter.trainable);
  visitor.Default("group", parameter.group, GroupId{});
  visitor.Default("first_update", parameter.first_update, int64_t{0});
  visitor.Default("in_base", parameter.in_base, false);
  visitor.Field("init", parameter.init);
}

template <MaybeConst<Unit> T, class Visitor>
auto VisitLine(T& unit, Visitor&& visitor) -> void {
  visitor.Field("reshard_after_forward", unit.reshard_after_forward);
}

template <MaybeConst<SubVector> T, class Visitor>
auto VisitLine(T& sub_vector, Visitor&& visitor) -> void {
  visitor.Default("unit", sub_vector.unit, UnitId{});
  visitor.Field("compute", sub_vector.compute);
  visitor.Field("trainable", sub_vector.trainable);
  visitor.Default("cut", sub_vector.cut, AxisSet{});
  visitor.Field("length", sub_vector.length);
  visitor.Default("axes", sub_vector.axes, AxisSet{});
}

/// The slices of a sub-vector, as a line of their own: values name sub-vectors, and these lines name values.
template <MaybeConst<SubVector> T>
struct SlicesOf {
  T& sub_vector;
};

template <MaybeConst<SubVector> T, class Visitor>
auto VisitLine(const SlicesOf<T>& slices, Visitor&& visitor) -> void {
  visitor.Default("shard", slices.sub_vector.shard, ValueId{});
  visitor.Default("gradient", slices.sub_vector.gradient, ValueId{});
  visitor.Default("compute_copy", slices.sub_vector.compute_copy, ValueId{});
  for (size_t i = 0; i < OptimizerRoles.size(); ++i) {
    visitor.Default(ToText(OptimizerRoles[i]), slices.sub_vector.moments[i], ValueId{});
  }
}

template <MaybeConst<Segment> T, class Visitor>
auto VisitLine(T& segment, Visitor&& visitor) -> void {
  visitor.Field("begin", segment.begin);
  visitor.Field("end", segment.end);
  visitor.Default("parameter", segment.parameter, ParameterId{});
  visitor.Default("counted_in_norm", segment.counted_in_norm, true);
}

template <MaybeConst<Scalar> T, class Visitor>
auto VisitLine(T& scalar, Visitor&& visitor) -> void {
  visitor.Default("expression", scalar.expression, std::string{});
  visitor.Default("role", scalar.role, ScalarRole::None);
  visitor.Default("head", scalar.head, HeadId{});
}

template <MaybeConst<Buffer> T, class Visitor>
auto VisitLine(T& buffer, Visitor&& visitor) -> void {
  visitor.Field("bytes", buffer.bytes);
  visitor.Field("category", buffer.category);
  visitor.Default("offset", buffer.offset, int64_t{-1});
}

template <MaybeConst<Value> T, class Visitor>
auto VisitLine(T& value, Visitor&& visitor) -> void {
  visitor.Default("role", value.role, ValueRole{});
}

template <MaybeConst<Trigger> T, class Visitor>
auto VisitLine(T& trigger, Visitor&& visitor) -> void {
  visitor.Default("every", trigger.every, int64_t{0});
}

template <MaybeConst<Halt> T, class Visitor>
auto VisitLine(T& halt, Visitor&& visitor) -> void {
  visitor.Default("scalar", halt.scalar, ScalarId{});
  visitor.Default("above", halt.above, int64_t{0});
  visitor.Field("code", halt.code);
}

/// Visits the fields that every op line carries after those of its row.
template <MaybeConst<Op> T, class Visitor>
auto VisitLine(T& op, Visitor&& visitor) -> void {
  visitor.Default("layer", op.layer, int32_t{-1});
  visitor.Default("phase", op.phase, Phase::None);
  visitor.Default("when", op.when, Predicate{});
  visitor.Default("waits", op.waits, std::vector<EventId>{});
  visitor.Default("signals", op.signals, EventId{});
}

/// Turns the field kinds of an op row into the three calls above.
template <class Visitor>
struct RowFields {
  Visitor& visitor;
  std::string name_onto = {};

  auto In(std::string_view name, auto& id) -> void { visitor.Default(name, id, ValueId{}); }
  auto InIf(std::string_view name, auto& id) -> void { In(name, id); }
  auto Out(std::string_view name, auto& id) -> void { visitor.Default(name, id, ValueId{}); }
  auto Over(std::string_view name, auto& id, auto&) -> void { visitor.Default(name, id, ValueId{}); }
  auto Acc(std::string_view name, auto& id, auto& onto) -> void {
    visitor.Default(name, id, ValueId{});
    name_onto = std::string(name) + "_onto";
    visitor.Default(name_onto, onto, ValueId{});
  }
  auto InOut(std::string_view name, auto& id) -> void { visitor.Default(name, id, ValueId{}); }
  auto Scratch(std::string_view name, auto& id) -> void { visitor.Default(name, id, ValueId{}); }
  auto Maybe(std::string_view name, auto& id) -> void { visitor.Default(name, id, ValueId{}); }
  auto Whole(std::string_view name, auto& id) -> void { visitor.Default(name, id, BufferId{}); }
  template <class T>
  auto Attr(std::string_view name, T& value) -> void {
    using Plain = std::remove_const_t<T>;
    constexpr bool has_default = std::same_as<Plain, bool> || std::same_as<Plain, AxisSet> || requires { value.index; };
    if constexpr (has_default) {
      visitor.Default(name, value, Plain{});
    } else {
      visitor.Field(name, value);
    }
  }
};

}  // namespace shardc
