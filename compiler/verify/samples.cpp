// Samples: over one step the ranks and microbatches read each sample of the step exactly once, those along tp the same
// ones, and the next step takes the next samples; an evaluation reads its set of samples once.
//
// A load begins at base + factor * coordinate of the rank + factor * index of the pass + factor * step, and reads B
// samples. Sorted by their factors, the coordinates and the index are digits of a number: if the least factor is B and
// each other one the product of the one before and its size, the loads cut [0, samples of a step) in blocks of B, each
// of one rank and pass. No rank and no step has to be tried.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/plan/loops.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

/// The ops of one section that load samples.
struct Loads {
  struct Load {
    size_t index = 0;
    /// The loop that the op is in.
    std::optional<size_t> loop;
    /// Passes of that loop.
    int64_t count = 1;
    SampleLoad samples = {};
  };
  std::vector<Load> all;
};

auto CollectLoads(const std::vector<Op>& ops) -> Loads {
  Loads loads;
  Loads::Load at;
  for (size_t i = 0; i < ops.size(); ++i) {
    at.index = i;
    switch (LoopEdgeOf(ops[i])) {
      case LoopEdge::Begin:
        at.loop = i;
        at.count = LoopCountOf(ops[i]);
        break;
      case LoopEdge::End:
        at.loop.reset();
        at.count = 1;
        break;
      case LoopEdge::None: break;
    }
    if (const auto samples = SampleLoadOf(ops[i])) {
      at.samples = *samples;
      loads.all.push_back(at);
    }
  }
  return loads;
}

class SampleVerifier {
 public:
  SampleVerifier(const Plan& plan, Findings& findings) : plan_(plan), findings_(findings) {}

  auto Run() -> void {
    for (const SectionKind section : {SectionKind::Data, SectionKind::Eval}) {
      Section(section, CollectLoads(plan_.section(section).ops));
    }
  }

 private:
  /// Returns the number of ranks that read samples of their own.
  auto Replicas() const -> int64_t { return plan_.mesh.size(AxesSharing(Shared::Samples)); }

  auto Section(SectionKind section, const Loads& loads) -> void {
    if (plan_.section(section).ops.empty()) {
      return;
    }
    const auto tokens =
        std::ranges::count_if(loads.all, [](const Loads::Load& load) { return load.samples.tokens.valid(); });
    if (tokens != 1) {
      findings_.Add("sample-loads"_rule, "section {} has {} load_tokens, expected 1", ToText(section), tokens);
      return;
    }
    const Loads::Load& first =
        *std::ranges::find_if(loads.all, [](const Loads::Load& load) { return load.samples.tokens.valid(); });
    std::vector<HeadId> heads;
    for (const Loads::Load& load : loads.all) {
      if (load.samples.split != (section == SectionKind::Data ? Split::Train : Split::Eval)) {
        findings_.AddOp(section, load.index, "sample-split"_rule, "section {} reads the other split", ToText(section));
      }
      if (*load.samples.sample != *first.samples.sample || load.loop != first.loop) {
        findings_.AddOp(section, load.index, "sample-targets"_rule, "reads from {} on, the tokens are read from {} on",
                        ToText(*load.samples.sample), ToText(*first.samples.sample));
      }
      if (!load.samples.targets.valid()) {
        continue;
      }
      if (std::ranges::find(heads, load.samples.head) != heads.end()) {
        findings_.AddOp(section, load.index, "sample-loads"_rule, "these targets are loaded twice");
      }
      heads.push_back(load.samples.head);
    }
    const std::optional<int64_t> samples = Tile(section, first);
    if (!samples) {
      return;
    }
    if (section == SectionKind::Data) {
      Train(loads, first, *samples);
    } else {
      Eval(first, *samples);
    }
  }

  /// Returns how many samples the ranks and passes read, each once; nothing if they leave some out or read some twice.
  auto Tile(SectionKind section, const Loads::Load& load) -> std::optional<int64_t> {
    const RankExpr& sample = *load.samples.sample;
    const AxisSet axes = AxesSharing(Shared::Samples);
    for (size_t i = 0; i < NumMeshAxes; ++i) {
      const auto axis = static_cast<Axis>(i);
      if (!axes.Has(axis) && sample.axis[i] != 0 && plan_.mesh.size(axis) > 1) {
        findings_.AddOp(section, load.index, "sample-by-tp"_rule,
                        "the ranks along {}, which share no samples, read other ones: {}", ToText(axis),
                        ToText(sample));
        return std::nullopt;
      }
    }
    std::vector<std::pair<int64_t, int64_t>> digits;
    const auto add = [&](int64_t factor, int64_t size) {
      if (size > 1) {
        digits.emplace_back(factor, size);
      }
    };
    for (size_t i = 0; i < NumMeshAxes; ++i) {
      if (axes.Has(static_cast<Axis>(i))) {
        add(sample.axis[i], plan_.mesh.sizes[i]);
      }
    }
    add(sample.repeat, load.count);
    std::ranges::sort(digits);
    int64_t expected = plan_.run.micro_batch;
    bool tiles = sample.base == 0 && !sample.clamp && !sample.equals;
    for (size_t i = NumMeshAxes; i < NumAxes; ++i) {
      // A coordinate along a part does not count as a digit: it follows from the coordinate along the whole axis.
      tiles = tiles && (sample.axis[i] == 0 || plan_.mesh.size(static_cast<Axis>(i)) == 1);
    }
    for (const auto& [factor, size] : digits) {
      tiles = tiles && factor == expected && !__builtin_mul_overflow(expected, size, &expected);
    }
    if (!tiles) {
      findings_.AddOp(section, load.index, "sample-tiles"_rule,
                      "reads {} samples from {} on; over the ranks of {} and the {} passes that is not "
                      "each of the first {} once",
                      plan_.run.micro_batch, ToText(sample), ToText(axes), load.count, SamplesOf(load));
      return std::nullopt;
    }
    return expected;
  }
  auto SamplesOf(const Loads::Load& load) const -> double {
    return static_cast<double>(Replicas()) * static_cast<double>(plan_.run.micro_batch) *
           static_cast<double>(load.count);
  }

  auto Train(const Loads& loads, const Loads::Load& load, int64_t samples) -> void {
    if (samples != SamplesPerStep(plan_) || plan_.run.tokens_per_step % plan_.data.seq != 0) {
      findings_.AddOp(SectionKind::Data, load.index, "sample-count"_rule,
                      "the ranks read {} samples of {} tokens per step, and a step has {} tokens", samples,
                      plan_.data.seq, plan_.run.tokens_per_step);
    } else if (load.samples.sample->step != samples) {
      findings_.AddOp(SectionKind::Data, load.index, "sample-step"_rule,
                      "a step begins {} samples after the step before, which reads {}", load.samples.sample->step,
                      samples);
    } else if (plan_.Established(PassKind::Shard)) {
      for (const Loads::Load& each : loads.all) {
        Slots(each);
      }
      if (findings_.empty()) {
        Views(load);
      }
    }
  }

  /// Asks that each pass over the loads fills bytes of its own, one microbatch after another.
  auto Slots(const Loads::Load& load) -> void {
    for (const ValueId id : {load.samples.tokens, load.samples.targets, load.samples.starts, load.samples.positions}) {
      if (!id.valid() || load.count == 1) {
        continue;
      }
      const Value& loaded = plan_.values[id];
      if (loaded.offset.repeat != loaded.bytes().value || loaded.offset.clamp || loaded.offset.equals) {
        findings_.AddOp(SectionKind::Data, load.index, "sample-slots"_rule,
                        "writes {} bytes at {}; each of {} microbatches takes the bytes after the one before it",
                        loaded.bytes().value, ToText(loaded.offset), load.count);
      }
    }
  }

  auto Eval(const Loads::Load& load, int64_t samples) -> void {
    const DataSource& data = plan_.data;
    const int64_t tokens = data.has_eval_files() ? data.eval_file_tokens : data.eval_tokens;
    const auto sources = data.has_eval_files() ? 1 : std::max<int64_t>(1, std::ssize(data.sources));
    int64_t held_out = 0;
    const int64_t of_source = data.packs() ? data.eval_file_samples : (tokens - 1) / data.seq;
    const bool fits = !__builtin_mul_overflow(of_source, sources, &held_out) && held_out >= 1;
    // The last pass may read past the end, where there are no targets, but not begin there on every rank.
    if (!fits || samples < held_out || samples - samples / load.count >= held_out) {
      findings_.AddOp(SectionKind::Eval, load.index, "sample-count"_rule,
                      "the ranks read {} samples in {} passes; {} tokens are held out of each of {} sources, in {} "
                      "samples",
                      samples, load.count, tokens, sources, held_out);
    }
    if (load.samples.sample->step != 0) {
      findings_.AddOp(SectionKind::Eval, load.index, "sample-step"_rule, "evaluations read other samples by step: {}",
                      ToText(*load.samples.sample));
    }
  }

  /// Asks that each pass of the step reads one microbatch, and that ops outside of a loop read all of them.
  auto Views(const Loads::Load& load) -> void {
    // By buffer: what is loaded there.
    std::vector<const Value*> loaded(static_cast<size_t>(plan_.buffers.size()));
    const std::vector<Op>& data = plan_.section(SectionKind::Data).ops;
    for (size_t i = 0; i < data.size(); ++i) {
      for (const Access& access : findings_.AccessesOf(SectionKind::Data, i)) {
        if (access.kind != AccessKind::Read && FactsOf(data[i]).loads_samples) {
          const Value& value = plan_.values[access.value];
          loaded[static_cast<size_t>(value.buffer.index)] = &value;
        }
      }
    }
    LoopTracker loops;
    const std::vector<Op>& ops = plan_.section(SectionKind::Step).ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      loops.Enter(ops[i]);
      const std::optional<int64_t> passes = loops.in_loop() ? std::optional(loops.count()) : std::nullopt;
      for (const Access& access : findings_.AccessesOf(SectionKind::Step, i)) {
        const Value& view = plan_.values[access.value];
        const Value* whole = loaded[static_cast<size_t>(view.buffer.index)];
        if (whole != nullptr && !Reads(view, *whole, load.count, passes)) {
          findings_.AddOp(SectionKind::Step, i, "sample-view"_rule,
                          "reads {} at {}, in {} passes; {} microbatches of {} bytes are loaded, to {}", access.field,
                          ToText(view.offset), passes.value_or(1), load.count, whole->bytes().value,
                          ToText(whole->offset));
        }
      }
    }
  }
  static auto Reads(const Value& view, const Value& loaded, int64_t microbatches, std::optional<int64_t> passes)
      -> bool {
    const int64_t bytes = loaded.bytes().value;
    const int64_t begin = view.offset.base - loaded.offset.base;
    const bool is_plain = view.offset.axis == loaded.offset.axis && view.offset.clamp == loaded.offset.clamp &&
                          view.offset.equals == loaded.offset.equals;
    if (microbatches == 1) {
      return is_plain && (view.offset.repeat == 0 || passes.value_or(1) == 1);
    }
    if (passes) {
      return is_plain && *passes == microbatches && view.offset.repeat == loaded.offset.repeat && begin >= 0 &&
             begin + view.bytes().value <= bytes;
    }
    return is_plain && loaded.offset.repeat == bytes && begin == 0 && view.bytes().value == bytes * microbatches;
  }

  const Plan& plan_;
  Findings& findings_;
};

}  // namespace

auto VerifySamples(const Plan& plan, Findings& findings) -> void {
  if (plan.Established(PassKind::Build)) {
    SampleVerifier(plan, findings).Run();
  }
}

}  // namespace shardc
