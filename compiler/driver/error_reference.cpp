// Rows of diagnostics.def as text, and those of plan_rules.def and op_constraints.def. In a row's format, {0} and its
// like stand for values.

#include "compiler/driver/error_reference.h"

#include "compiler/base/check.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/verify/plan_rule_rows.h"

namespace shardc {

/// "`heads` is 0, ..." says nothing to a reader; "`heads` is ..., " does.
static auto MessageShape(std::string_view format) -> std::string {
  std::string text;
  while (!format.empty()) {
    const size_t open = format.find('{');
    text += format.substr(0, open);
    if (open == std::string_view::npos) {
      break;
    }
    text += "...";
    format.remove_prefix(format.find('}', open) + 1);
  }
  return text;
}

static auto SeverityText(Severity severity) -> std::string_view {
  switch (severity) {
    case Severity::Error: return "error";
    case Severity::Warning: return "warning";
  }
  CHECK(false, "severity {}", static_cast<int>(severity));
}

/// What the verifier asks of plans, a line for each label.
static auto PlanRuleReference() -> std::string {
  std::string text =
      "\n# Findings about a plan\n\n"
      "A finding of the verifier ends with a label in brackets, which names a rule of the verifier or a constraint of "
      "an\n"
      "op. A plan that `shardc plan` made from a recipe keeps all of them. The rules are made from\n"
      "`schemas/plan_rules.def`, the constraints from `schemas/op_constraints.def`.\n\n"
      "## Rules of the verifier\n\n";
  bool of_ops = false;
  for (const PlanRuleRow& row : PlanRuleRows()) {
    if (!of_ops && !row.mnemonic.empty()) {
      of_ops = true;
      text += "\n## Constraints of the ops\n\n";
    }
    text += fmt::format("- `{}`: {}\n", row.label, row.help);
  }
  return text;
}

auto ErrorReference() -> std::string {
  std::string text =
      "# Errors and warnings\n\n"
      "Made by `shardc docs --errors` from `schemas/diagnostics.def`; a test checks that it is current. `shardc help "
      "NAME` prints\n"
      "one. In the messages, `...` stands for a value.\n";
  for (const DiagnosticRow& row : DiagnosticRows()) {
    text += fmt::format("\n## {}\n\n", row.name);
    const std::string shape = MessageShape(row.format);
    if (shape != "...") {
      text += fmt::format("    {}: {}\n\n", SeverityText(row.severity), shape);
    }
    // Each line of the long text is a sentence or more; a hard break keeps Example and Fix apart.
    std::string_view help = row.help;
    while (!help.empty()) {
      const size_t end = help.find('\n');
      const std::string_view line = help.substr(0, end);
      help.remove_prefix(end == std::string_view::npos ? help.size() : end + 1);
      const bool breaks = help.starts_with("Example:") || help.starts_with("Fix:");
      text += fmt::format("{}{}\n", line, breaks ? "\\" : "");
    }
  }
  return text + PlanRuleReference();
}

auto DescribeDiagnostic(std::string_view name) -> std::string {
  for (const DiagnosticRow& row : DiagnosticRows()) {
    if (row.name == name) {
      return fmt::format("{} ({})\n  {}\n\n{}", row.name, SeverityText(row.severity), MessageShape(row.format),
                         row.help);
    }
  }
  return "";
}

}  // namespace shardc
