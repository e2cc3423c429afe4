// Rules of [model]: heads and widths that divide, and products that fit.

#include "compiler/check/check_context.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/model_sizes.h"

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

auto EstimateParameters(const Recipe& recipe) -> double {
  const ModelSizes m = ResolveModel(recipe);
  const auto hidden = static_cast<double>(m.hidden);
  const double q_width = static_cast<double>(m.heads) * static_cast<double>(m.head_dim);
  const double kv_width = static_cast<double>(m.kv_heads) * static_cast<double>(m.head_dim);
  const double block = hidden * (2 * q_width + 2 * kv_width + 3 * static_cast<double>(m.ffn) + 2);
  const double vocabularies = static_cast<double>(m.vocab) * (m.tied ? 1 : 2) + FurtherVocab(m);
  return static_cast<double>(m.layers) * block + vocabularies * hidden + hidden;
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
  if (model.head_dim.is_set) {
    if (context.IsSound(model.head_dim) && *model.head_dim % 2 != 0) {
      context.diags()
          .Build(model.head_dim.at, DiagnosticKind::HeadDimOdd, *model.head_dim, "")
          .Help(fmt::format("use head_dim = {}", *model.head_dim + 1))
          .Emit();
      context.MarkFaulty(model.head_dim);
    }
    return;
  }
  if (!context.IsSound(model.hidden, model.heads)) {
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
  const int64_t step = 2 * *model.heads;
  const int64_t below = *model.hidden / step * step;
  const std::string help = below > 0 ? fmt::format("use hidden = {} or {}, or set head_dim", below, below + step)
                                     : fmt::format("use hidden = {}, or set head_dim", below + step);
  if (*model.hidden % *model.heads != 0) {
    context.diags()
        .Build(model.hidden.at, DiagnosticKind::HiddenNotDivisible, *model.hidden, *model.heads)
        .Note(model.heads.at, "`heads` set here")
        .Help(help)
        .Emit();
    context.MarkFaulty(model.hidden);
  } else if (*model.hidden / *model.heads % 2 != 0) {
    context.diags()
        .Build(model.hidden.at, DiagnosticKind::HeadDimOdd, *model.hidden / *model.heads,
               fmt::format(" (`hidden` {} / `heads` {})", *model.hidden, *model.heads))
        .Note(model.heads.at, "`heads` set here")
        .Help(help)
        .Emit();
    context.MarkFaulty(model.hidden);
  }
}

auto CheckModel(CheckContext& context) -> void {
  CheckHeads(context);
  CheckHeadDim(context);
  const ModelSection& model = context.recipe().model;
  const bool is_sound = context.IsSound(model.layers, model.hidden, model.heads, model.kv_heads, model.head_dim,
                                        model.ffn, model.vocab, model.seq);
  if (is_sound && EstimateParameters(context.recipe()) >= MaxElements) {
    context.diags().Build(model.at, DiagnosticKind::SizesTooLarge, "the number of parameters", "2^56").Emit();
    context.MarkFaulty(model.hidden);
  }
  CheckRopeFrequency(context);
}

}  // namespace shardc
