// Rules of [[data.source]]: sources or one stream, names of their own, no targets from files, and weights that give
// every step its samples and every source some.

#include <algorithm>
#include <map>
#include <vector>

#include "compiler/check/check_context.h"
#include "compiler/expr/step_evaluator.h"
#include "compiler/keys/source_name.h"

namespace shardc {

/// Every step is looked at, where there are no more than these; else so many, evenly spread, the first and last among
/// them. About 0.1 s for three weights.
constexpr int64_t MostStepsLookedAt = int64_t{1} << 20;

auto MakesTokens(const CheckContext& context) -> bool {
  const Located<OneOf<Synthetic>>& synthetic = context.recipe().data.synthetic;
  return context.IsSound(synthetic) && synthetic->is_accepted() && *synthetic != Synthetic::None;
}

/// True if samples come from sources.
static auto CheckOneOrSources(CheckContext& context) -> bool {
  const DataSection& data = context.recipe().data;
  if (MakesTokens(context)) {
    if (data.tokens.is_set || !data.source.empty()) {
      context.diags()
          .Build(data.tokens.is_set ? data.tokens.at : data.source.front().at, DiagnosticKind::DataSourceCount,
                 fmt::format("`synthetic` is \"{}\", so tokens are made, and {} too", data.synthetic->text(),
                             data.tokens.is_set ? "`tokens` names files" : "there is a [[data.source]]"))
          .Note(data.synthetic.at, "`synthetic` set here")
          .Help("leave out `synthetic` or the files")
          .Emit();
    }
    return false;
  }
  if (data.tokens.is_set && !data.source.empty()) {
    context.diags()
        .Build(data.tokens.at, DiagnosticKind::DataSourceCount,
               fmt::format("`tokens` names one stream, and there {} [[data.source]] too",
                           data.source.size() == 1 ? "is a" : fmt::format("are {}", data.source.size())))
        .Note(data.source.front().at, "the first source is here")
        .Help("use `tokens` alone, or give these files a [[data.source]] with a weight")
        .Emit();
    return false;
  }
  const bool is_none_known = data.tokens.is_known && context.IsRead("data.source");
  // If the value of `synthetic` is misspelt, the recipe does say what to read.
  if (!data.tokens.is_set && data.source.empty() && is_none_known && context.IsSound(data.synthetic)) {
    context.diags()
        .Build(data.at.valid() ? data.at : SourceRange{0, 0, 0, 1}, DiagnosticKind::DataSourceCount,
               "neither `data.tokens` nor a [[data.source]] is set, so there is nothing to read")
        .Help(
            "name token files: [data] tokens = [\"tokens.bin\"], or try the recipe without files: synthetic = \"zipf\"")
        .Emit();
  }
  return !data.source.empty();
}

static auto CheckNames(CheckContext& context) -> void {
  const std::vector<SourceTable>& sources = context.recipe().data.source;
  std::map<std::string, SourceRange> named;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!context.IsSound(sources[i].name)) {
      continue;
    }
    const std::string name = SourceName(context.recipe().data.source[i], i);
    const SourceRange at = sources[i].name.is_set ? sources[i].name.at : sources[i].at;
    const auto [other, fresh] = named.try_emplace(name, at);
    if (!IsLowercaseName(name)) {
      context.diags().Report(at, DiagnosticKind::DataSourceName, name,
                             "a name has letters a to z, digits and _, and begins with a letter");
    } else if (!fresh) {
      context.diags()
          .Build(at, DiagnosticKind::DataSourceName, name, "another source has this name")
          .Note(other->second, "the other source is here")
          .Emit();
    }
  }
}

static auto CheckNoTargets(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const auto report = [&](const SourceRange& at) {
    context.diags().Report(at, DiagnosticKind::DataSourceTargets,
                           MakesTokens(context) ? "[data] makes its tokens"
                                                : fmt::format("[data] has {} sources", recipe.data.source.size()));
  };
  if (recipe.data.targets.is_set) {
    report(recipe.data.targets.at);
  }
  for (const LossHead& head : recipe.loss.head) {
    report(head.targets.at);
  }
}

/// Nothing where one does not read.
static auto ReadWeights(CheckContext& context) -> std::vector<StepEvaluator> {
  std::vector<StepEvaluator> weights;
  bool all_read = true;
  for (const SourceTable& source : context.recipe().data.source) {
    if (!context.IsSound(source.weight)) {
      all_read = false;
      continue;
    }
    ExprResult<Expr> weight = ParseExpr(source.weight->text, ExprKind::Schedule);
    if (weight.ok()) {
      weights.emplace_back(std::move(weight.value), *context.recipe().train.steps);
    } else {
      ReportExprErrors(context, source.weight.at, weight.errors);
      all_read = false;
    }
  }
  if (!all_read) {
    weights.clear();
  }
  return weights;
}

/// Up to the first fault.
static auto CheckWeights(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const std::vector<SourceTable>& sources = recipe.data.source;
  std::vector<StepEvaluator> weights = ReadWeights(context);
  if (weights.empty() || !context.IsSound(recipe.train.steps)) {
    return;
  }
  const auto is_constant = [](const StepEvaluator& weight) { return weight.is_constant(); };
  const bool all_constant = std::all_of(weights.begin(), weights.end(), is_constant);
  const int64_t steps = *recipe.train.steps;
  const int64_t looked_at = all_constant ? 1 : std::min(steps, MostStepsLookedAt);
  std::vector<bool> is_read(sources.size(), false);
  for (int64_t i = 0; i < looked_at; ++i) {
    const int64_t step = Spread(i, looked_at, steps - 1);
    bool any_is_read = false;
    for (size_t s = 0; s < sources.size(); ++s) {
      const ExprResult<double> weight = weights[s].At(step);
      if (!weight.ok()) {
        ReportStepErrors(context, sources[s].weight.at, weight.errors, step);
        return;
      }
      if (weight.value < 0) {
        context.diags().Report(sources[s].weight.at, DiagnosticKind::DataWeightNegative, SourceName(sources[s], s),
                               weight.value, step);
        return;
      }
      is_read[s] = is_read[s] || weight.value > 0;
      any_is_read = any_is_read || weight.value > 0;
    }
    if (!any_is_read) {
      context.diags().Report(sources.front().weight.at, DiagnosticKind::DataWeightsZero, sources.size(), step);
      return;
    }
  }
  for (size_t s = 0; s < sources.size(); ++s) {
    // Between steps that were passed over it may have a share.
    if (!is_read[s] && (looked_at == steps || weights[s].is_constant())) {
      context.diags().Report(sources[s].weight.at, DiagnosticKind::DataSourceUnused, SourceName(sources[s], s), steps);
    }
  }
}

auto CheckDataSources(CheckContext& context) -> void {
  const bool has_sources = CheckOneOrSources(context);
  if (has_sources || MakesTokens(context)) {
    CheckNoTargets(context);
  }
  if (!has_sources) {
    return;
  }
  CheckNames(context);
  for (const SourceTable& source : context.recipe().data.source) {
    if (context.IsSound(source.tokens)) {
      CheckFiles(context, "tokens", source.tokens);
    }
  }
  CheckWeights(context);
}

}  // namespace shardc
