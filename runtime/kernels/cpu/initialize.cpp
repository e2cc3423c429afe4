// initialize: the owned elements of one parameter, by its rule; the rest of the slice stays as it is.
#include <algorithm>
#include <array>

#include "compiler/base/bfloat16.h"
#include "compiler/expr/expr.h"
#include "compiler/expr/moments.h"
#include "compiler/plan/local_parameter.h"
#include "runtime/init/fill.h"
#include "runtime/kernels/cpu/draw_in_pieces.h"
#include "runtime/kernels/cpu/operand.h"

namespace shardc {

/// As FillRule, each element rounded once more.
static auto FillRule(const Distribution& rule, uint64_t seed, std::string_view name, Interval elements, BFloat16* out)
    -> void {
  constexpr int64_t BlockSize = 4096;
  std::array<float, BlockSize> block;
  for (int64_t begin = elements.begin; begin < elements.end; begin += BlockSize) {
    const int64_t end = std::min(elements.end, begin + BlockSize);
    FillRule(rule, seed, name, {begin, end}, block.data());
    for (int64_t i = 0; i < end - begin; ++i) {
      Store(out[begin - elements.begin + i], block[static_cast<size_t>(i)]);
    }
  }
}

auto Bind(const op::Initialize& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  const Parameter& parameter = plan.parameters[op.parameter];
  const auto segment = std::find_if(sub_vector.segments.begin(), sub_vector.segments.end(),
                                    [&](const Segment& candidate) { return candidate.parameter == op.parameter; });
  CHECK(segment != sub_vector.segments.end(), "{} does not lie in v{}", parameter.name, op.sub_vector.index);
  const Interval owned = OwnedSegment(plan, sub_vector, *segment, binder.rank());
  const int64_t slice_begin = OwnedSliceOf(sub_vector, plan.mesh, binder.rank()).begin;
  CHECK(owned.empty() || owned.end - slice_begin <= binder.ViewOf(op.shard).num_elements(), "{} lies outside the slice",
        parameter.name);

  // A plan's rules have every name put in already.
  const auto parsed = ParseExpr(parameter.init, ExprKind::Rule);
  CHECK(parsed.ok(), "rule of {}: {}", parameter.name, parameter.init);
  const auto rule = EvaluateRule(parsed.value, {});
  CHECK(rule.ok(), "rule of {}: {}", parameter.name, parameter.init);

  const BoxRange elements = LogicalRange(plan, *segment, owned, binder.rank());
  return ForElementType(binder.ViewOf(op.shard).dtype, [&]<class T>() -> Kernel {
    return [shard = Resolve<T>(binder, op.shard), at = owned.begin - slice_begin, elements, rule = rule.value,
            seed = plan.run.init_seed, name = parameter.name, center = MomentsOf(rule.value).mean,
            drawn = binder.DrawnOf(op.parameter), &loops = LoopsOf(plan)](const Moment& moment) -> Status {
      T* const out = shard.At(moment) + at;
      ForEachRun(elements, [&](int64_t begin, int64_t end, int64_t offset) {
        DrawInPieces(loops, {begin, end}, out + offset, center, drawn,
                     [&](Interval piece, T* to) { FillRule(rule, seed, name, piece, to); });
      });
      return Success{};
    };
  });
}

}  // namespace shardc
