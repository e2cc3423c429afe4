// Rules of [data]: paths that can name files (data_files.cpp looks them up), a held-out end that holds a sample, and
// keys that say something beside the others.

#include <algorithm>

#include "compiler/check/check_context.h"

namespace shardc {

auto IsLowercaseName(std::string_view name) -> bool {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && is_letter(name.front()) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
  });
}

auto CheckPath(CheckContext& context, const SourceRange& at, std::string_view key, std::string_view path,
               std::string_view what) -> bool {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (!path.empty() && std::none_of(path.begin(), path.end(), is_control)) {
    return true;
  }
  context.diags().Report(at, DiagnosticKind::PathInvalid, key, fmt::format("\"{}\"", path), what);
  return false;
}

auto CheckFiles(CheckContext& context, std::string_view key, const Located<std::vector<std::string>>& files) -> void {
  if (files->empty()) {
    context.diags()
        .Build(files.at, DiagnosticKind::PathInvalid, key, "an empty list", "file")
        .Help(key == "eval" ? "to do without it, leave it out, or type --unset data.eval" : "")
        .Emit();
  }
  for (const std::string& path : *files) {
    if (!CheckPath(context, files.at, key, path, "file")) {
      context.MarkFaulty(files);
      break;
    }
  }
}

/// Keys on files, beside tokens that are made.
static auto CheckSyntheticKeys(CheckContext& context) -> void {
  const DataSection& data = context.recipe().data;
  const auto report = [&](const SourceRange& at, std::string_view key, std::string_view why) {
    context.diags().Report(at, DiagnosticKind::KeyHasNoEffect, key,
                           fmt::format("`synthetic` is \"{}\", and {}", data.synthetic->text(), why));
  };
  if (data.format.is_set) {
    report(data.format.at, "format", "no file is read");
  }
  if (data.order.is_set) {
    report(data.order.at, "order", "no sample comes twice");
  }
  if (data.scan.is_set) {
    report(data.scan.at, "scan", "no file is read");
  }
}

/// Checks that nothing else says what an evaluation reads.
static auto CheckEvalAlone(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const auto report = [&](const SourceRange& other, std::string_view what) {
    context.diags().Build(recipe.data.eval.at, DiagnosticKind::EvalFiles, what).Note(other, "set here").Emit();
  };
  if (*recipe.data.eval_tokens > 0 && context.IsSound(recipe.data.eval_tokens)) {
    report(recipe.data.eval_tokens.at, "`eval` names files to evaluate on, and `eval_tokens` holds out others");
  }
  if (MakesTokens(context)) {
    report(recipe.data.synthetic.at, "`eval` names files, and `synthetic` makes tokens");
  }
  if (recipe.data.targets.is_set) {
    report(recipe.data.targets.at, "the files of `eval` have no targets, and those of training are files");
  }
  for (const LossHead& head : recipe.loss.head) {
    report(head.targets.at, "the files of `eval` have no targets for a head of [loss]");
  }
}

auto CheckData(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const DataSection& data = recipe.data;
  CheckDataSources(context);
  CheckDocuments(context);
  if (data.tokens.is_set && context.IsSound(data.tokens)) {
    CheckFiles(context, "tokens", data.tokens);
  }
  if (*data.eval_tokens > 0 && context.IsSound(data.eval_tokens, recipe.model.seq) &&
      *data.eval_tokens <= *recipe.model.seq) {
    context.diags()
        .Build(data.eval_tokens.at, DiagnosticKind::EvalTooSmall, *data.eval_tokens, *recipe.model.seq + 1)
        .Note(recipe.model.seq.at, "`seq` set here")
        .Help(fmt::format("use eval_tokens = {} or more, or 0", *recipe.model.seq + 1))
        .Emit();
  }
  CheckByteLimit(context, "scan", data.scan);
  if (data.eval.is_set && context.IsSound(data.eval)) {
    CheckFiles(context, "eval", data.eval);
    CheckEvalAlone(context);
  }
  if (MakesTokens(context)) {
    CheckSyntheticKeys(context);
    return;
  }
  if (data.seed.is_set && context.IsSound(data.order) && *data.order == SampleOrder::Sequential) {
    context.diags().Report(data.seed.at, DiagnosticKind::KeyHasNoEffect, "seed",
                           "`order` is \"sequential\", so nothing is shuffled");
  }
}

}  // namespace shardc
