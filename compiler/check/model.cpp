// Rules of [model]: heads and widths that divide, and products that fit.

#include <algorithm>

#include "compiler/check/check_context.h"
#include "compiler/model/estimate.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/model_sizes.h"
#include "compiler/recipe/owned_keys.h"

namespace shardc {

/// "1, 2, 3 or 6": the divisors of n; empty if there are more than fit a line.
static auto DivisorsText(int64_t n) -> std::string {
  constexpr size_t max_listed = 12;
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n && divisors.size() <= max_listed; ++d) {
    if (n % d == 0) {
      divisors.push_back(d);
    }
  }
  if (divisors.size() > max_listed) {
    return "";
  }
  std::string text;
  for (size_t i = 0; i < divisors.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == divisors.size() ? " or " : ", ", divisors[i]);
  }
  return text;
}

static auto CheckHeads(CheckContext& context) -> void {
  const ModelSection& model = context.recipe().model;
  if (model.kv_heads.is_set && context.IsSound(model.heads, model.kv_heads) && *model.heads % *model.kv_heads != 0) {
    auto builder = context.diags().Build(model.kv_heads.at, DiagnosticKind::HeadsNotDivisible, *model.heads, "kv_heads",
                                         *model.kv_heads);
    builder.Note(model.heads.at, "`heads` set here");
    if (const std::string divisors = DivisorsText(*model.heads); !divisors.empty()) {
      builder.Help(fmt::format("use kv_heads = {}", divisors));
    }
    builder.Emit();
    context.MarkFaulty(model.kv_heads);
  }
}

static auto CheckHeadDim(CheckContext& context) -> void {
  const ModelSection& model = context.recipe().model;
  const bool needs_even = model.family->is_accepted() && NeedsEvenHeads(ModelFamilyOf(*model.family));
  if (model.head_dim.is_set) {
    if (needs_even && context.IsSound(model.head_dim) && *model.head_dim % 2 != 0) {
      context.diags()
          .Build(model.head_dim.at, DiagnosticKind::HeadDimOdd, *model.head_dim, "")
          .Help(fmt::format("use head_dim = {}", *model.head_dim + 1))
          .Emit();
      context.MarkFaulty(model.head_dim);
    }
    return;
  }
  if (!context.IsSound(model.hidden, model.heads, model.head_dim)) {
    return;
  }
  const int64_t head_dim = *model.hidden / *model.heads;
  if (const auto range = RangeOf("model.head_dim"); static_cast<double>(head_dim) > range->high) {
    context.diags()
        .Build(model.hidden.at, DiagnosticKind::OutOfRange, "hidden / heads", head_dim,
               fmt::format("{} to {}, as of `head_dim`", range->low_text, range->high_text))
        .Note(model.heads.at, "`heads` set here")
        .Emit();
    context.MarkFaulty(model.hidden);
    return;
  }
  // Multiples of 2 * heads give heads of even width.
  const int64_t step = (needs_even ? 2 : 1) * *model.heads;
  const int64_t below = *model.hidden / step * step;
  const std::string help = (below > 0 ? fmt::format("use hidden = {} or {}", below, below + step)
                                      : fmt::format("use hidden = {}", below + step)) +
                           (IsLacked(context.recipe(), "model", "head_dim") ? "" : ", or set head_dim");
  if (*model.hidden % *model.heads != 0) {
    context.diags()
        .Build(model.hidden.at, DiagnosticKind::HiddenNotDivisible, *model.hidden, *model.heads)
        .Note(model.heads.at, "`heads` set here")
        .Help(help)
        .Emit();
    context.MarkFaulty(model.hidden);
  } else if (needs_even && *model.hidden / *model.heads % 2 != 0) {
    context.diags()
        .Build(model.hidden.at, DiagnosticKind::HeadDimOdd, *model.hidden / *model.heads,
               fmt::format(" (`hidden` {} / `heads` {})", *model.hidden, *model.heads))
        .Note(model.heads.at, "`heads` set here")
        .Help(help)
        .Emit();
    context.MarkFaulty(model.hidden);
  }
}

auto HasSoundModel(const CheckContext& context) -> bool {
  const ModelSection& model = context.recipe().model;
  const auto& heads = context.recipe().loss.head;
  return std::ranges::all_of(heads, [&](const LossHead& head) { return context.IsSound(head.vocab); }) &&
         context.IsRead("loss.head") &&
         context.IsSound(model.family, model.layers, model.hidden, model.heads, model.kv_heads, model.head_dim,
                         model.ffn, model.vocab, model.seq);
}

auto CheckModel(CheckContext& context) -> void {
  CheckHeads(context);
  CheckHeadDim(context);
  const ModelSection& model = context.recipe().model;
  if (HasSoundModel(context) &&
      EstimateParameters(ModelFamilyOf(*model.family), ResolveModel(context.recipe())) >= MaxElements) {
    auto builder = context.diags().Build(model.at, DiagnosticKind::SizesTooLarge, "the number of parameters", "2^56");
    for (const auto& [name, size] : {std::pair("layers", &model.layers), std::pair("hidden", &model.hidden),
                                     std::pair("ffn", &model.ffn), std::pair("vocab", &model.vocab)}) {
      builder.Note(size->at, fmt::format("`{}` is {}", name, **size));
    }
    builder.Emit();
    context.MarkFaulty(model.hidden);
  }
  if (!IsLacked(context.recipe(), "model", "rope_frequency")) {
    CheckRopeFrequency(context);
  }
}

}  // namespace shardc
