// Rules of [batch]: two of the three sizes give the third, and what follows from them fits.

#include <algorithm>

#include "compiler/base/plan_limits.h"
#include "compiler/check/check_context.h"
#include "compiler/check/check_recipe.h"
#include "compiler/model/estimate.h"
#include "compiler/recipe/resolved.h"

namespace shardc {

/// Ranks with data of their own.
static auto NumDataRanks(const Recipe& recipe) -> int64_t { return *recipe.mesh.replicate * *recipe.mesh.dp; }

auto ResolveBatch(const Recipe& recipe) -> BatchSizes {
  const BatchSection& batch = recipe.batch;
  const int64_t ranks = NumDataRanks(recipe);
  BatchSizes sizes{.global = *batch.global, .micro = *batch.micro, .accumulate = *batch.accumulate};
  if (!batch.accumulate.is_set) {
    const bool follows = batch.global.is_set && batch.micro.is_set;
    sizes.accumulate = follows ? *batch.global / (ranks * *batch.micro) : 1;
  }
  if (!batch.micro.is_set) {
    sizes.micro = *batch.global / (ranks * sizes.accumulate);
  }
  if (!batch.global.is_set) {
    sizes.global = ranks * sizes.micro * sizes.accumulate;
  }
  return sizes;
}

/// `global` against the product of what divides it, called `divisor_text` in the message.
static auto CheckDivisible(CheckContext& context, int64_t divisor, const std::string& divisor_text) -> void {
  const BatchSection& batch = context.recipe().batch;
  if (*batch.global % divisor == 0) {
    return;
  }
  const int64_t below = *batch.global / divisor * divisor;
  const std::string nearest = below > 0 ? fmt::format("{} or {}", below, below + divisor) : fmt::format("{}", divisor);
  auto builder =
      context.diags().Build(batch.global.at, DiagnosticKind::BatchNotDivisible, *batch.global, divisor_text, divisor);
  if (context.recipe().mesh.dp.is_set) {
    builder.Note(context.recipe().mesh.dp.at, "`dp` set here");
  }
  for (const auto& [leaf, name] : {std::pair(&batch.micro, "micro"), std::pair(&batch.accumulate, "accumulate")}) {
    if (leaf->is_set) {
      builder.Note(leaf->at, fmt::format("`{}` set here", name));
    }
  }
  builder.Help(fmt::format("use global = {}", nearest)).Emit();
  context.MarkFaulty(batch.global);
}

namespace {

/// The sizes that a product is made of: those of [batch] and the mesh alone, those of a step too, those of the run;
/// those of the mesh and of the parameters.
enum class SizeProduct { Sequences, Step, Run, Gradients };

}  // namespace

/// Returns true if a size is a factor of the product.
static auto IsFactor(SizeProduct product, std::string_view size) -> bool {
  const auto is_one_of = [&](std::initializer_list<std::string_view> sizes) {
    return std::ranges::find(sizes, size) != sizes.end();
  };
  const bool is_of_batch = is_one_of({"global", "micro", "accumulate", "replicate", "dp"});
  switch (product) {
    case SizeProduct::Sequences: return is_of_batch;
    case SizeProduct::Step: return size != "steps";
    case SizeProduct::Run: return is_of_batch || is_one_of({"seq", "steps"});
    case SizeProduct::Gradients: return is_one_of({"replicate", "dp", "layers", "hidden", "ffn", "vocab"});
  }
  CHECK(false, "product {}", static_cast<int>(product));
}

/// Notes the keys that the product is made of, with their values and lines.
static auto NoteFactors(const Recipe& recipe, SizeProduct product, Diagnostics::Builder& builder) -> void {
  for (const auto& [name, size] : {std::pair("global", &recipe.batch.global), std::pair("micro", &recipe.batch.micro),
                                   std::pair("accumulate", &recipe.batch.accumulate),
                                   std::pair("replicate", &recipe.mesh.replicate), std::pair("dp", &recipe.mesh.dp),
                                   std::pair("seq", &recipe.model.seq), std::pair("layers", &recipe.model.layers),
                                   std::pair("hidden", &recipe.model.hidden), std::pair("ffn", &recipe.model.ffn),
                                   std::pair("vocab", &recipe.model.vocab), std::pair("steps", &recipe.train.steps)}) {
    if (size->is_set && IsFactor(product, name)) {
      builder.Note(size->at, fmt::format("`{}` is {}", name, **size));
    }
  }
}

/// True if `size`, a product of whole numbers, is below `limit`; reports sizes-too-large at the section of its factors
/// else.
static auto CheckFits(CheckContext& context, SizeProduct product, double size, double limit, std::string_view what,
                      std::string_view limit_text) -> bool {
  if (size < limit) {
    return true;
  }
  const Recipe& recipe = context.recipe();
  const SourceRange& at = product == SizeProduct::Gradients ? recipe.model.at : recipe.batch.at;
  auto builder = context.diags().Build(at, DiagnosticKind::SizesTooLarge, what, limit_text);
  NoteFactors(recipe, product, builder);
  builder.Emit();
  return false;
}

static auto CheckThree(CheckContext& context) -> bool {
  const BatchSection& batch = context.recipe().batch;
  const int64_t ranks = NumDataRanks(context.recipe());
  const bool has_global = batch.global.is_set;
  const bool has_micro = batch.micro.is_set;
  const bool has_accumulate = batch.accumulate.is_set;
  if (!has_global && !has_micro) {
    // (A range error of the section would have come first.)
    const SourceRange at = has_accumulate ? batch.accumulate.at : batch.at.valid() ? batch.at : SourceRange{0, 0, 0, 1};
    context.diags()
        .Build(at, DiagnosticKind::BatchUnderdetermined)
        .Help("name the sequences per step: [batch] global = 8")
        .Emit();
    return false;
  }
  // The product of what is given, beside which `global` is judged.
  const double divisor = static_cast<double>(ranks) * (has_micro ? static_cast<double>(*batch.micro) : 1) *
                         (has_accumulate ? static_cast<double>(*batch.accumulate) : 1);
  if (!CheckFits(context, SizeProduct::Sequences, divisor, MaxElements, "the number of sequences per step", "2^56")) {
    return false;
  }
  if (!has_global) {
    return true;
  }
  if (has_micro && has_accumulate) {
    const int64_t product = ranks * *batch.micro * *batch.accumulate;
    if (*batch.global != product) {
      context.diags()
          .Build(batch.global.at, DiagnosticKind::BatchOverdetermined, *batch.global, ranks, *batch.micro,
                 *batch.accumulate, product)
          .Help(fmt::format("use global = {}", product))
          .Emit();
      return false;
    }
    return true;
  }
  std::string text = fmt::format("{} ranks", ranks);
  text += has_micro ? fmt::format(" * `micro` {}", *batch.micro) : "";
  text += has_accumulate ? fmt::format(" * `accumulate` {}", *batch.accumulate) : "";
  CheckDivisible(context, static_cast<int64_t>(divisor), text);
  return context.IsSound(batch.global);
}

/// What the sizes of model, batch and run multiply to. Activations are bounded from above: everything that the forward
/// computes, kept for all blocks, and its gradients.
static auto CheckProducts(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const ModelSizes m = ResolveModel(recipe);
  const ModelFamily& family = ModelFamilyOf(*recipe.model.family);
  const ForwardEstimate forward = EstimateForward(family, m);
  const BatchSizes sizes = ResolveBatch(recipe);
  const auto seq = static_cast<double>(m.seq);
  const double micro_tokens = static_cast<double>(sizes.micro) * seq;
  const double rank_tokens = micro_tokens * static_cast<double>(sizes.accumulate);
  const double parameters = EstimateParameters(family, m);
  const double flops_per_token = 8 * parameters + 16 * seq * forward.attention_width;
  const double run_tokens = static_cast<double>(sizes.global) * seq * static_cast<double>(*recipe.train.steps);
  const double step_tokens = static_cast<double>(sizes.global) * seq;
  const auto ranks = static_cast<double>(NumDataRanks(recipe));
  if (step_tokens > static_cast<double>(MostCount)) {
    auto builder = context.diags().Build(
        recipe.batch.at, DiagnosticKind::PlanTooLarge,
        fmt::format("a step of {} sequences of `seq` {} has {:.0f} tokens", sizes.global, m.seq, step_tokens),
        MostCount);
    NoteFactors(recipe, SizeProduct::Sequences, builder);
    builder.Note(recipe.model.seq.at, fmt::format("`seq` is {}", m.seq));
    builder.Emit();
    return;
  }
  static_cast<void>(
      // As counted by SampleShares.
      (recipe.data.source.empty() ||
       CheckFits(context, SizeProduct::Sequences, static_cast<double>(sizes.global), 0x1p30,
                 "the number of sequences per step, of several sources,", "2^30")) &&
      CheckFits(context, SizeProduct::Step, micro_tokens * 2 * forward.elements, MaxElements,
                "the number of elements of the activations of a microbatch", "2^56") &&
      CheckFits(context, SizeProduct::Step, rank_tokens * flops_per_token, MaxCount,
                "the number of operations of a step on one rank", "2^62") &&
      // As counted by all_reduce: the bytes of fp32, twice from each rank, with room for the sum of two.
      CheckFits(context, SizeProduct::Gradients, 16 * parameters * ranks, MaxCount,
                "the number of bytes that all ranks send of their gradients", "2^62") &&
      CheckFits(context, SizeProduct::Run, run_tokens, MaxCount, "the number of tokens of the run", "2^62"));
}

auto CheckBatch(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const BatchSection& batch = recipe.batch;
  if (!context.IsSound(batch.global, batch.micro, batch.accumulate, recipe.mesh.dp, recipe.mesh.replicate) ||
      !CheckThree(context)) {
    return;
  }
  if (HasSoundModel(context) && context.IsSound(recipe.train.steps)) {
    CheckProducts(context);
  }
}

}  // namespace shardc
