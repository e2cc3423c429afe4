// Diagnostics as JSON Lines for programs. The members are in a fixed order.

#include "compiler/base/text/json_text.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/diag/render_order.h"

namespace shardc {

static auto AddPlace(JsonObject& object, const SourceSet& sources, const SourceRange& at) -> void {
  if (!at.valid()) {
    object.Null("file").Null("line").Null("column").Null("length");
    return;
  }
  object.Text("file", sources[at.source].name)
      .Integer("line", at.line)
      .Integer("column", at.column)
      .Integer("length", at.length);
}

static auto NotesOf(const Diagnostic& diagnostic, const SourceSet& sources) -> std::string {
  JsonList notes;
  for (const DiagnosticNote& note : diagnostic.notes) {
    JsonObject object;
    AddPlace(object, sources, note.at);
    notes.Json(object.Text("message", note.text).text());
  }
  return notes.text();
}

auto RenderJson(const Diagnostics& diagnostics) -> std::string {
  std::string text;
  for (const Diagnostic* diagnostic : InPlaceOrder(diagnostics)) {
    JsonObject object;
    object.Text("severity", diagnostic->severity == Severity::Error ? "error" : "warning")
        .Text("name", RowOf(diagnostic->kind).name);
    AddPlace(object, diagnostics.sources(), diagnostic->at);
    object.Text("message", diagnostic->text).Json("notes", NotesOf(*diagnostic, diagnostics.sources()));
    if (diagnostic->help.empty()) {
      object.Null("help");
    } else {
      object.Text("help", diagnostic->help);
    }
    text += object.text() + "\n";
  }
  return text;
}

}  // namespace shardc
