#include "compiler/expr/reference.h"

#include <fmt/format.h>

#include "compiler/base/check.h"
#include "compiler/expr/init_schemes.h"
#include "compiler/expr/names.h"

namespace shardc {

static auto KindsText(const std::vector<ExprKind>& kinds) -> std::string {
  if (kinds.size() == EnumNames<ExprKind>::names.size()) {
    return "all";
  }
  std::string text;
  for (const ExprKind kind : kinds) {
    std::string_view name = ToText(kind);
    const bool ends_with_y = name.ends_with('y');
    name.remove_suffix(ends_with_y ? 1 : 0);
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name, ends_with_y ? "ies" : "s");
  }
  return text;
}

static auto NamesText() -> std::string {
  std::string text = "| name | in | is |\n|---|---|---|\n";
  for (const ExprVariableRow& row : ExprVariableRows()) {
    text += fmt::format("| `{}` | {} | {} |\n", row.name, KindsText(row.kinds), row.doc);
  }
  for (const ExprConstantRow& row : ExprConstantRows()) {
    text += fmt::format("| `{}` | all | {} |\n", row.name, row.doc);
  }
  return text;
}

static auto FunctionsText(bool of_library) -> std::string {
  std::string text = of_library
                         ? "| function | in | domain | value | is written | source |\n|---|---|---|---|---|---|\n"
                         : "| function | in | domain | value | error, ulp | source |\n|---|---|---|---|---|---|\n";
  for (const ExprFunctionRow& row : ExprFunctionRows()) {
    if (row.is_library() == of_library) {
      text += fmt::format("| `{}({})` | {} | {} | {} |{} {} |\n", row.name, row.parameters, KindsText(row.kinds),
                          row.parameters.empty() ? ""
                          : row.domain.empty()   ? "numbers"
                                                 : row.domain,
                          row.doc,
                          fmt::format(" {} |", of_library ? fmt::format("`{}`", row.body) : std::string(row.error)),
                          row.source);
    }
  }
  return text;
}

static auto SchemesText() -> std::string {
  std::string text = "\nA scheme has a rule for each kind of parameter:\n\n| kind | is |\n|---|---|\n";
  for (size_t kind = 0; kind < CountOf<ParameterKind>(); ++kind) {
    text += fmt::format("| {} | {} |\n", ToText(static_cast<ParameterKind>(kind)), ParameterKindDocs[kind]);
  }
  for (const InitScheme& scheme : InitSchemes()) {
    text += fmt::format("\n**`{}`**: {}.\n\n| kinds | rule |\n|---|---|\n", scheme.name, scheme.doc);
    for (const InitSchemeRule& rule : scheme.rules) {
      std::string kinds;
      for (const ParameterKind kind : rule.kinds) {
        kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", ToText(kind));
      }
      text += fmt::format("| {} | `{}` |\n", kinds, rule.value);
    }
  }
  return text;
}

auto ExprReference() -> std::string {
  return fmt::format(
      "## Names\n\n{}\n"
      "## Functions\n\nA function takes numbers and returns a number or a distribution. Angles are in radians. `n`, "
      "`begin` and "
      "`decay` of\nschedules are numbers of steps. All other numbers have no unit. The functions have the same bits on "
      "every machine. A\ntest with MPFR measures that no function is off by more than the error of its row.\n\n{}\n"
      "### Written in the language\n\n{}\n"
      "## Schemes of init rules\n{}",
      NamesText(), FunctionsText(false), FunctionsText(true), SchemesText());
}

}  // namespace shardc
