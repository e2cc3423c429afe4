// Rules of [model]: heads and widths that divide, and products that fit.

#include <algorithm>

#include "compiler/check/check_context.h"
#include "compiler/model/estimate.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/owned_keys.h"
#include "compiler/recipe/resolved.h"

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

static auto NeedsEvenHeadDim(const ModelSection& model) -> bool {
  return model.family->is_accepted() && NeedsEvenHeads(ModelFamilyOf(*model.family));
}

namespace {

/// Two sizes that do not agree: the one to change, and the other.
struct Disagreement {
  const Located<int64_t>& blamed;
  const Located<int64_t>& other;
  std::string_view other_name;
};

}  // namespace

/// `size` and `heads`: it is `heads` that changes if the recipe sets it beside a preset that has the size.
static auto Disagree(const Recipe& recipe, const Located<int64_t>& size, std::string_view name) -> Disagreement {
  const Located<int64_t>& heads = recipe.model.heads;
  const bool is_own = recipe.StandInAt(heads.at) == nullptr && recipe.StandInAt(size.at) != nullptr;
  return is_own ? Disagreement{heads, size, name} : Disagreement{size, heads, "heads"};
}

/// The values next to `heads` that agree with the other sizes: "16 or 32"; empty if there is none.
/// Requires: hidden and kv_heads are sound.
static auto NearestHeads(const ModelSection& model) -> std::string {
  const int64_t factor = NeedsEvenHeadDim(model) ? 2 : 1;
  const int64_t kv_heads = model.kv_heads.is_set ? *model.kv_heads : 1;
  const auto agrees = [&](int64_t heads) {
    return heads % kv_heads == 0 && (model.head_dim.is_set || *model.hidden % (factor * heads) == 0);
  };
  std::string nearest;
  for (int64_t below = *model.heads - 1; below > 0 && nearest.empty(); --below) {
    nearest = agrees(below) ? fmt::format("{}", below) : "";
  }
  const int64_t most = std::max(*model.hidden / factor, *model.heads + kv_heads);
  for (int64_t above = *model.heads + 1; above <= most; ++above) {
    if (agrees(above)) {
      return fmt::format("{}{}{}", nearest, nearest.empty() ? "" : " or ", above);
    }
  }
  return nearest;
}

static auto CheckHeads(CheckContext& context) -> void {
  const ModelSection& model = context.recipe().model;
  if (!model.kv_heads.is_set || !context.IsSound(model.heads, model.kv_heads) || *model.heads % *model.kv_heads == 0) {
    return;
  }
  const Disagreement pair = Disagree(context.recipe(), model.kv_heads, "kv_heads");
  const bool is_of_heads = &pair.blamed == &model.heads;
  const std::string values = !is_of_heads                    ? DivisorsText(*model.heads)
                             : context.IsSound(model.hidden) ? NearestHeads(model)
                                                             : "";
  context.diags()
      .Build(pair.blamed.at, DiagnosticKind::HeadsNotDivisible, *model.heads, "kv_heads", *model.kv_heads)
      .Note(pair.other.at, fmt::format("`{}` set here", pair.other_name))
      .Help(values.empty() ? "" : fmt::format("use {} = {}", is_of_heads ? "heads" : "kv_heads", values))
      .Emit();
  context.MarkFaulty(pair.blamed);
}

static auto CheckHeadDim(CheckContext& context) -> void {
  const ModelSection& model = context.recipe().model;
  const bool needs_even = NeedsEvenHeadDim(model);
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
  const Disagreement pair = Disagree(context.recipe(), model.hidden, "hidden");
  const std::string note = fmt::format("`{}` set here", pair.other_name);
  const int64_t head_dim = *model.hidden / *model.heads;
  if (const auto range = RangeOf("model.head_dim"); static_cast<double>(head_dim) > range->high) {
    context.diags()
        .Build(pair.blamed.at, DiagnosticKind::OutOfRange, "hidden / heads", head_dim,
               fmt::format("{} to {}, as of `head_dim`", range->low_text, range->high_text))
        .Note(pair.other.at, note)
        .Emit();
    context.MarkFaulty(pair.blamed);
    return;
  }
  // Multiples of 2 * heads give heads of even width.
  const int64_t step = (needs_even ? 2 : 1) * *model.heads;
  const int64_t below = *model.hidden / step * step;
  const std::string heads = &pair.blamed == &model.heads && context.IsSound(model.kv_heads) ? NearestHeads(model) : "";
  const std::string help = (!heads.empty() ? fmt::format("use heads = {}", heads)
                            : below > 0    ? fmt::format("use hidden = {} or {}", below, below + step)
                                           : fmt::format("use hidden = {}", below + step)) +
                           (IsLacked(context.recipe(), "model", "head_dim") ? "" : ", or set head_dim");
  if (*model.hidden % *model.heads != 0) {
    context.diags()
        .Build(pair.blamed.at, DiagnosticKind::HiddenNotDivisible, *model.hidden, *model.heads)
        .Note(pair.other.at, note)
        .Help(help)
        .Emit();
    context.MarkFaulty(pair.blamed);
  } else if (needs_even && *model.hidden / *model.heads % 2 != 0) {
    context.diags()
        .Build(pair.blamed.at, DiagnosticKind::HeadDimOdd, *model.hidden / *model.heads,
               fmt::format(" (`hidden` {} / `heads` {})", *model.hidden, *model.heads))
        .Note(pair.other.at, note)
        .Help(help)
        .Emit();
    context.MarkFaulty(pair.blamed);
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
