// Where a fault inside a value stands in the recipe: the column in an expression, seen through the quotes and escapes
// of the TOML string that holds it; the item of a list.

#include "compiler/check/expression_place.h"

#include <algorithm>
#include <cstdlib>

#include "compiler/base/text/parse_whole.h"
#include "compiler/check/check_context.h"

namespace shardc {

namespace {

/// Bytes that the escape at the front of `text` takes in the source and stands for in the value.
struct EscapeSize {
  size_t in_source = 1;
  size_t in_value = 1;
};

}  // namespace

static auto SizeOfEscape(std::string_view text) -> EscapeSize {
  if (text.size() < 2 || text[0] != '\\') {
    return {};
  }
  const size_t digits = text[1] == 'u' ? 4 : text[1] == 'U' ? 8 : 0;
  if (digits == 0) {
    return {2, 1};
  }
  const unsigned long code = std::strtoul(std::string(text.substr(2, digits)).c_str(), nullptr, 16);
  return {2 + digits, code < 0x80 ? 1U : code < 0x800 ? 2U : code < 0x10000 ? 3U : 4U};
}

auto PlaceInValue(const SourceSet& sources, const SourceRange& at, int column, int length) -> SourceRange {
  if (!at.valid() || at.line < 1) {
    return at;
  }
  std::string_view text = sources.Line(at);
  text.remove_prefix(std::min(text.size(), static_cast<size_t>(at.column - 1)));
  if (text.starts_with("\"\"\"") || text.starts_with("'''")) {
    return at;
  }
  const bool has_escapes = text.starts_with('"');
  const size_t content = has_escapes || text.starts_with('\'') ? 1 : 0;
  const auto source_offset = [&](size_t value_offset) {
    size_t in_source = content;
    for (size_t in_value = 0; in_value < value_offset && in_source < text.size();) {
      const EscapeSize size = has_escapes ? SizeOfEscape(text.substr(in_source)) : EscapeSize{};
      in_source += size.in_source;
      in_value += size.in_value;
    }
    return static_cast<int32_t>(in_source);
  };
  const auto first = static_cast<size_t>(std::max(column, 1) - 1);
  SourceRange place = at;
  const int32_t begin = source_offset(first);
  const int32_t end = source_offset(first + static_cast<size_t>(std::max(length, 1)));
  place.column = at.column + begin;
  place.length = std::max(1, end - begin);
  return place;
}

auto PlaceInList(const SourceSet& sources, const SourceRange& list, std::string_view item) -> SourceRange {
  if (!list.valid() || list.line < 1) {
    return list;
  }
  for (const char quote : {'"', '\''}) {
    const std::string quoted = fmt::format("{}{}{}", quote, item, quote);
    const size_t begin = sources.Line(list).find(quoted, static_cast<size_t>(std::max(list.column, 1) - 1));
    if (begin != std::string_view::npos) {
      SourceRange place = list;
      place.column = static_cast<int32_t>(begin) + 1;
      place.length = static_cast<int32_t>(quoted.size());
      return place;
    }
  }
  return list;
}

/// Is `step` a word of the expression?
static auto ReadsStep(std::string_view expression) -> bool {
  const auto is_name_part = [&](size_t at) {
    const char c = expression[at];
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  constexpr std::string_view Word = "step";
  for (size_t at = expression.find(Word); at != std::string_view::npos; at = expression.find(Word, at + 1)) {
    const size_t end = at + Word.size();
    if ((at == 0 || !is_name_part(at - 1)) && (end == expression.size() || !is_name_part(end))) {
      return true;
    }
  }
  return false;
}

/// Is it `step`, or `step` times a number that is not 0, so that it is 0 in the first step alone?
static auto IsMultipleOfStep(std::string expression) -> bool {
  std::erase_if(expression, [](char c) { return c == ' ' || c == '(' || c == ')'; });
  const size_t times = std::min(expression.find('*'), expression.size());
  const std::string left = expression.substr(0, times);
  const std::string right = times == expression.size() ? "1" : expression.substr(times + 1);
  const std::string& factor = left == "step" ? right : left;
  const double number = ParseWhole<double>(factor).value_or(0);
  return (left == "step" || right == "step") && number != 0;
}

static auto KindNamed(std::string_view name) -> DiagnosticKind {
  for (const DiagnosticRow& row : DiagnosticRows()) {
    if (row.name == name) {
      return row.kind;
    }
  }
  CHECK(false, "no diagnostic is called {}", name);
}

static auto BuildExprError(CheckContext& context, const SourceRange& at, const ExprError& error, std::string_view when)
    -> Diagnostics::Builder {
  const SourceRange place = PlaceInValue(context.diags().sources(), at, error.column, error.length);
  auto builder = context.diags().Build(place, KindNamed(error.name), fmt::format("{}{}", error.message, when));
  if (!error.closest.empty()) {
    builder.Help(fmt::format("did you mean `{}`?", error.closest));
  }
  return builder;
}

auto ReportExprErrors(CheckContext& context, const SourceRange& at, const std::vector<ExprError>& errors) -> void {
  for (const ExprError& error : errors) {
    BuildExprError(context, at, error, "").Emit();
  }
}

auto ReportStepErrors(CheckContext& context, const SourceRange& at, const std::vector<ExprError>& errors, int64_t step)
    -> void {
  const Located<int64_t>& steps = context.recipe().train.steps;
  for (const ExprError& error : errors) {
    auto builder = BuildExprError(context, at, error, fmt::format(" at step {} of {}", step, *steps));
    if (error.reads_steps) {
      builder.Note(steps.at, fmt::format("`steps` is {}, set here", *steps));
    }
    if (step == 0 && ReadsStep(error.divisor)) {
      builder.Help(IsMultipleOfStep(error.divisor) ? "`step` is 0 in the first step; (step + 1) counts from 1"
                                                   : "`step` is 0 in the first step");
    }
    builder.Emit();
  }
}

}  // namespace shardc
