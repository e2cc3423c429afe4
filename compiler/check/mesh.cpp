// Rules of [mesh]: what tensor parallelism cuts divides evenly.

#include <algorithm>
#include <initializer_list>

#include "compiler/base/plan_limits.h"
#include "compiler/check/check_context.h"
#include "compiler/check/check_recipe.h"
#include "compiler/recipe/model_sizes.h"

namespace shardc {

/// The divisors of all sizes next to `tp`, below and above: "4 or 8".
static auto NearestDivisors(int64_t tp, std::initializer_list<int64_t> sizes) -> std::string {
  const auto divides_all = [&](int64_t candidate) {
    return std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size % candidate == 0; });
  };
  int64_t below = std::min(tp, std::min(sizes));
  while (!divides_all(below)) {
    --below;
  }
  for (int64_t above = tp + 1; above <= std::min(sizes); ++above) {
    if (divides_all(above)) {
      return fmt::format("{} or {}", below, above);
    }
  }
  return fmt::format("{}", below);
}

static auto CheckRanks(CheckContext& context) -> void {
  const MeshSection& mesh = context.recipe().mesh;
  // Each is 2^20 at most.
  const int64_t ranks = *mesh.replicate * *mesh.dp * *mesh.tp;
  if (!context.IsSound(mesh.replicate, mesh.dp, mesh.tp) || ranks <= MostRanks) {
    return;
  }
  context.diags()
      .Build(
          mesh.at, DiagnosticKind::PlanTooLarge,
          fmt::format("`replicate` {} * `dp` {} * `tp` {} makes {} ranks", *mesh.replicate, *mesh.dp, *mesh.tp, ranks),
          MostRanks)
      .Emit();
  context.MarkFaulty(mesh.replicate);
  context.MarkFaulty(mesh.dp);
  context.MarkFaulty(mesh.tp);
}

auto CheckMesh(CheckContext& context) -> void {
  CheckRanks(context);
  const Recipe& recipe = context.recipe();
  const ModelSection& model = recipe.model;
  const Located<int64_t>& tp = recipe.mesh.tp;
  if (!context.IsSound(tp, model.heads, model.kv_heads, model.hidden, model.head_dim, model.ffn, model.seq)) {
    return;
  }
  const ModelSizes sizes = ResolveModel(recipe);
  const auto check = [&](std::string_view name, int64_t size, const SourceRange& at) {
    if (size % *tp == 0) {
      return;
    }
    context.diags()
        .Build(tp.at, DiagnosticKind::TpNotDivisor, name, size, *tp)
        .Note(at, fmt::format("`{}` set here", name))
        .Help(fmt::format("use tp = {}", NearestDivisors(*tp, {sizes.heads, sizes.kv_heads, sizes.ffn, sizes.seq})))
        .Emit();
    context.MarkFaulty(tp);
  };
  check("heads", sizes.heads, model.heads.at);
  check("kv_heads", sizes.kv_heads, model.kv_heads.is_set ? model.kv_heads.at : model.heads.at);
  check("ffn", sizes.ffn, model.ffn.at);
  check("seq", sizes.seq, model.seq.at);
}

}  // namespace shardc
