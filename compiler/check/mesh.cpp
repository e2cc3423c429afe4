// Rules of [mesh]: what tensor parallelism cuts divides evenly.

#include <algorithm>

#include "compiler/base/mapped.h"
#include "compiler/base/plan_limits.h"
#include "compiler/check/check_context.h"
#include "compiler/check/check_recipe.h"
#include "compiler/model/estimate.h"
#include "compiler/recipe/resolved.h"

namespace shardc {

/// The divisors of all sizes next to `tp`, below and above: "4 or 8".
static auto NearestDivisors(int64_t tp, const std::vector<int64_t>& sizes) -> std::string {
  const auto divides_all = [&](int64_t candidate) {
    return std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size % candidate == 0; });
  };
  const int64_t least = *std::min_element(sizes.begin(), sizes.end());
  int64_t below = std::min(tp, least);
  while (!divides_all(below)) {
    --below;
  }
  for (int64_t above = tp + 1; above <= least; ++above) {
    if (divides_all(above)) {
      return fmt::format("{} or {}", below, above);
    }
  }
  return fmt::format("{}", below);
}

static auto CheckRanks(CheckContext& context) -> void {
  const MeshSection& mesh = context.recipe().mesh;
  if (!context.IsSound(mesh.replicate, mesh.dp, mesh.tp)) {
    return;
  }
  // Each is 2^20 at most.
  const int64_t ranks = *mesh.replicate * *mesh.dp * *mesh.tp;
  if (ranks <= MostRanks) {
    return;
  }
  context.diags().Report(
      mesh.at, DiagnosticKind::PlanTooLarge,
      fmt::format("`replicate` {} * `dp` {} * `tp` {} makes {} ranks", *mesh.replicate, *mesh.dp, *mesh.tp, ranks),
      MostRanks);
  context.MarkFaulty(mesh.replicate);
  context.MarkFaulty(mesh.dp);
  context.MarkFaulty(mesh.tp);
}

namespace {

/// A size of [model] that tp cuts into equal parts.
struct CutSize {
  std::string_view name;
  int64_t size;
  SourceRange at;
};

}  // namespace

static auto CutSizeOf(ModelKey key, const ModelSection& model, const ModelSizes& sizes) -> CutSize {
  switch (key) {
    case ModelKey::Hidden: return {"hidden", sizes.hidden, model.hidden.at};
    case ModelKey::Heads: return {"heads", sizes.heads, model.heads.at};
    case ModelKey::KvHeads:
      return {"kv_heads", sizes.kv_heads, model.kv_heads.is_set ? model.kv_heads.at : model.heads.at};
    case ModelKey::HeadDim:
      return {"head_dim", sizes.head_dim, model.head_dim.is_set ? model.head_dim.at : model.hidden.at};
    case ModelKey::Ffn: return {"ffn", sizes.ffn, model.ffn.at};
    case ModelKey::Seq: return {"seq", sizes.seq, model.seq.at};
    case ModelKey::NormEps:
    case ModelKey::RopeFrequency: break;
  }
  CHECK(false, "no size is cut that has the key {}", static_cast<int>(key));
}

/// Returns the sizes that tp cuts: of each, ops of the model have a part on a rank; of the sequence, norms have one.
static auto CutSizes(const Recipe& recipe) -> std::vector<CutSize> {
  const ModelSizes sizes = ResolveModel(recipe);
  auto cut = Mapped<CutSize>(EstimateForward(ModelFamilyOf(*recipe.model.family), sizes).cut,
                             [&](const ModelKey key) { return CutSizeOf(key, recipe.model, sizes); });
  cut.push_back(CutSizeOf(ModelKey::Seq, recipe.model, sizes));
  return cut;
}

static auto CheckHosts(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const MeshSection& section = recipe.mesh;
  const Located<int64_t>& hosts = section.hosts;
  if (!context.IsSound(section.replicate, section.dp, section.tp, hosts) || *hosts == 1) {
    return;
  }
  Mesh mesh{.sizes = {*section.replicate, *section.dp, *section.tp}};
  if (mesh.num_ranks() % *hosts != 0) {
    context.diags().Report(hosts.at, DiagnosticKind::HostsNotDivisor, *hosts, mesh.num_ranks());
    context.MarkFaulty(hosts);
    return;
  }
  mesh.hosts = *hosts;
  const Located<int64_t>& group = recipe.shard.reshard_size;
  if (group.is_set && context.IsSound(group) && *group > 1 && *section.dp % *group == 0) {
    mesh.set_size(Axis::DpInner, *group);
  }
  if (!mesh.HostsAreBoxes()) {
    context.diags().Report(hosts.at, DiagnosticKind::HostsCutUnevenly, *hosts, mesh.ranks_per_host());
    context.MarkFaulty(hosts);
    return;
  }
  if (const int64_t apart = mesh.HostsOf(AxisSet::Of(Axis::Tp)); apart > 1) {
    context.diags().Report(hosts.at, DiagnosticKind::TpAcrossHosts, apart);
  }
}

auto CheckMesh(CheckContext& context) -> void {
  CheckRanks(context);
  CheckHosts(context);
  const Recipe& recipe = context.recipe();
  const Located<int64_t>& tp = recipe.mesh.tp;
  if (!context.IsSound(tp) || !HasSoundModel(context)) {
    return;
  }
  const std::vector<CutSize> sizes = CutSizes(recipe);
  const auto numbers = Mapped<int64_t>(sizes, &CutSize::size);
  const auto is_uncut = [&](const CutSize& size) { return size.size % *tp != 0; };
  const auto first = std::ranges::find_if(sizes, is_uncut);
  if (first == sizes.end()) {
    return;
  }
  auto builder = context.diags().Build(tp.at, DiagnosticKind::TpNotDivisor, first->name, first->size, *tp);
  for (const CutSize& size : sizes) {
    if (is_uncut(size)) {
      builder.Note(size.at, fmt::format("`{}` is {}", size.name, size.size));
    }
  }
  builder.Help(fmt::format("use tp = {}", NearestDivisors(*tp, numbers))).Emit();
  context.MarkFaulty(tp);
}

}  // namespace shardc
