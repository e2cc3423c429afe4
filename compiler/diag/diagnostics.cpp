#include "compiler/diag/diagnostics.h"

#include "compiler/base/check.h"
#include "compiler/base/text/long_words.h"

namespace shardc {

auto DiagnosticRows() -> const std::vector<DiagnosticRow>& {
  static const std::vector<DiagnosticRow> rows{
#define DIAGNOSTIC(Name, text, severity, format, help) {DiagnosticKind::Name, text, severity, format, help},
#include "schemas/diagnostics.def"
  };
  return rows;
}

auto RowOf(DiagnosticKind kind) -> const DiagnosticRow& {
  const auto index = static_cast<size_t>(kind);
  CHECK(index < DiagnosticRows().size(), "diagnostic {} of {}", index, DiagnosticRows().size());
  return DiagnosticRows()[index];
}

auto Diagnostics::Add(Diagnostic diagnostic) -> void {
  if (strict_) {
    diagnostic.severity = Severity::Error;
  }
  diagnostic.text = CutLongWords(diagnostic.text);
  diagnostic.help = CutLongWords(diagnostic.help);
  for (DiagnosticNote& note : diagnostic.notes) {
    note.text = CutLongWords(note.text);
  }
  num_errors_ += diagnostic.severity == Severity::Error ? 1 : 0;
  all_.push_back(std::move(diagnostic));
}

auto Diagnostics::AddHelp(DiagnosticKind kind, const std::string& help) -> void {
  for (Diagnostic& diagnostic : all_) {
    if (diagnostic.kind == kind) {
      diagnostic.help += (diagnostic.help.empty() ? "" : "; ") + help;
    }
  }
}

}  // namespace shardc
