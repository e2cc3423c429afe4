// Diagnostics as JSON Lines for programs. Keys are written by hand, in a fixed order: this folder has no JSON library.

#include "compiler/base/printable.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/diag/render_order.h"

namespace shardc {

/// A JSON string in ASCII; bytes that are no UTF-8 become U+FFFD.
static auto Quoted(std::string_view text) -> std::string {
  std::string result = "\"";
  while (!text.empty()) {
    const char32_t point = TakeCodePoint(text).value_or(0xfffd);
    if (point == '"' || point == '\\') {
      result += '\\';
      result += static_cast<char>(point);
    } else if (point >= 0x20 && point < 0x7f) {
      result += static_cast<char>(point);
    } else if (point > 0xffff) {
      const auto offset = static_cast<uint32_t>(point) - 0x10000U;
      result += fmt::format("\\u{:04x}\\u{:04x}", 0xd800U + (offset >> 10), 0xdc00U + (offset & 0x3ffU));
    } else {
      result += fmt::format("\\u{:04x}", static_cast<uint32_t>(point));
    }
  }
  return result + '"';
}

static auto Place(const SourceSet& sources, const SourceRange& at) -> std::string {
  if (!at.valid()) {
    return R"("file":null,"line":null,"column":null,"length":null)";
  }
  return fmt::format(R"("file":{},"line":{},"column":{},"length":{})", Quoted(sources[at.source].name), at.line,
                     at.column, at.length);
}

auto RenderJson(const Diagnostics& diagnostics) -> std::string {
  const SourceSet& sources = diagnostics.sources();
  std::string text;
  for (const Diagnostic* diagnostic : InPlaceOrder(diagnostics)) {
    std::string notes;
    for (const DiagnosticNote& note : diagnostic->notes) {
      notes +=
          fmt::format(R"({}{{{},"message":{}}})", notes.empty() ? "" : ",", Place(sources, note.at), Quoted(note.text));
    }
    text += fmt::format(R"({{"severity":"{}","name":{},{},"message":{},"notes":[{}],"help":{}}})",
                        diagnostic->severity == Severity::Error ? "error" : "warning",
                        Quoted(RowOf(diagnostic->kind).name), Place(sources, diagnostic->at), Quoted(diagnostic->text),
                        notes, diagnostic->help.empty() ? "null" : Quoted(diagnostic->help));
    text += '\n';
  }
  return text;
}

}  // namespace shardc
