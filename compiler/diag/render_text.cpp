// Diagnostics as text for people: place, message and name; the quoted line and a caret row; notes; one help line.

#include <algorithm>

#include "compiler/base/printable.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/diag/render_order.h"

namespace shardc {

namespace {

constexpr std::string_view Bold = "\x1b[1m";
constexpr std::string_view Red = "\x1b[1;31m";
constexpr std::string_view Magenta = "\x1b[1;35m";
constexpr std::string_view Cyan = "\x1b[1;36m";
constexpr std::string_view Green = "\x1b[1;32m";
constexpr std::string_view Reset = "\x1b[0m";

/// Of a quoted line, at most this many columns are shown, and this many of them before the caret.
constexpr size_t MaxColumns = 160;
constexpr size_t ColumnsBeforeCaret = 60;

/// A line as shown, and where the marked range lies in it.
struct Quote {
  std::string text;
  size_t begin = 0;
  size_t end = 1;
};

class TextRenderer {
 public:
  TextRenderer(const SourceSet& sources, const RenderOptions& options) : sources_(sources), options_(options) {}

  auto Add(const Diagnostic& diagnostic) -> void {
    const bool is_error = diagnostic.severity == Severity::Error;
    text_ += fmt::format("{}{}: {} [{}]\n", Paint(Bold, Place(diagnostic.at)),
                         Paint(is_error ? Red : Magenta, is_error ? "error" : "warning"), Escaped(diagnostic.text),
                         RowOf(diagnostic.kind).name);
    AddQuote(diagnostic.at);
    for (const DiagnosticNote& note : diagnostic.notes) {
      text_ += fmt::format("{}{}: {}\n", Paint(Bold, Place(note.at)), Paint(Cyan, "note"), Escaped(note.text));
    }
    if (!diagnostic.help.empty()) {
      AddHelp(diagnostic.help);
    }
  }

  auto AddCount(int num_errors) -> void {
    text_ +=
        fmt::format("{} errors, {} shown; `shardc check --format json RECIPE`, with the same options, prints all\n",
                    num_errors, options_.max_errors);
  }

  auto text() const -> const std::string& { return text_; }

  auto AddWaiting(int num_rules, int num_errors) -> void {
    text_ += fmt::format("{} more check{} for {}\n", num_rules, num_rules == 1 ? " waits" : "s wait",
                         num_errors == 1 ? "this" : "these");
  }

 private:
  auto AddHelp(std::string_view help) -> void {
    const size_t first = std::min(help.find('\n'), help.size());
    text_ += fmt::format("{}: {}\n", Paint(Green, "help"), Escaped(help.substr(0, first)));
    for (help.remove_prefix(first); !help.empty();) {
      const size_t end = std::min(help.find('\n', 1), help.size());
      text_ += end == 1 ? "\n" : fmt::format("    {}\n", Escaped(help.substr(1, end - 1)));
      help.remove_prefix(end);
    }
  }

  auto Paint(std::string_view color, std::string_view text) const -> std::string {
    return options_.color && !text.empty() ? fmt::format("{}{}{}", color, text, Reset) : std::string(text);
  }

  /// "recipe.toml:12:9: ", or less where less is known.
  auto Place(const SourceRange& at) const -> std::string {
    if (!at.valid()) {
      return "";
    }
    // Letters of any script stay, so that a terminal can open the file by its name.
    const std::string name = PrintableLine(sources_[at.source].name);
    return at.line < 1 ? fmt::format("{}: ", name) : fmt::format("{}:{}:{}: ", name, at.line, at.column);
  }

  auto AddQuote(const SourceRange& at) -> void {
    const std::string_view line = sources_.Line(at);
    if (line.find_first_not_of(" \t") == std::string_view::npos) {
      return;
    }
    const Quote quote = QuoteOf(line, at);
    text_ += fmt::format("{:5} | {}\n", at.line, quote.text);
    const std::string marks = "^" + std::string(quote.end - quote.begin - 1, '~');
    text_ += fmt::format("{:{}} | {}{}\n", "", std::max<size_t>(5, fmt::formatted_size("{}", at.line)),
                         std::string(quote.begin, ' '), Paint(Green, marks));
  }

  static auto QuoteOf(std::string_view line, const SourceRange& at) -> Quote {
    // shown[i] is the column at which byte i of the line appears; a byte inside a code point, that of the next one.
    std::vector<size_t> shown(line.size() + 1);
    Quote quote;
    for (std::string_view rest = line; !rest.empty();) {
      const size_t first = line.size() - rest.size();
      shown[first] = quote.text.size();
      TakeCodePoint(rest);
      const size_t past = line.size() - rest.size();
      quote.text += line[first] == '\t' ? "    " : Escaped(line.substr(first, past - first));
      std::fill(shown.begin() + static_cast<ptrdiff_t>(first) + 1, shown.begin() + static_cast<ptrdiff_t>(past) + 1,
                quote.text.size());
    }
    const auto size = static_cast<int64_t>(line.size());
    const int64_t begin = std::clamp<int64_t>(int64_t{at.column} - 1, 0, size);
    const int64_t end = std::clamp<int64_t>(begin + at.length, begin, size);
    quote.begin = shown[static_cast<size_t>(begin)];
    quote.end = std::max(quote.begin + 1, shown[static_cast<size_t>(end)]);
    quote.text.erase(quote.text.find_last_not_of(' ') + 1);
    Cut(quote);
    return quote;
  }

  static auto Cut(Quote& quote) -> void {
    if (quote.text.size() <= MaxColumns) {
      return;
    }
    const std::string_view dots = "...";
    if (quote.begin > MaxColumns - ColumnsBeforeCaret) {
      const size_t cut = quote.begin - ColumnsBeforeCaret;
      quote.text.replace(0, cut, dots);
      quote.begin -= cut - dots.size();
      quote.end -= cut - dots.size();
    }
    if (quote.text.size() > MaxColumns) {
      quote.text.replace(MaxColumns, std::string::npos, dots);
      quote.end = std::min(quote.end, MaxColumns + dots.size());
    }
  }

  const SourceSet& sources_;
  const RenderOptions& options_;
  std::string text_;
};

}  // namespace

auto RenderText(const Diagnostics& diagnostics, const RenderOptions& options) -> std::string {
  TextRenderer renderer(diagnostics.sources(), options);
  int num_errors = 0;
  for (const Diagnostic* diagnostic : InPlaceOrder(diagnostics)) {
    num_errors += diagnostic->severity == Severity::Error ? 1 : 0;
    if (diagnostic->severity == Severity::Warning || num_errors <= options.max_errors) {
      renderer.Add(*diagnostic);
    }
  }
  if (num_errors > options.max_errors) {
    renderer.AddCount(num_errors);
  }
  if (num_errors > 0 && diagnostics.num_waiting() > 0) {
    renderer.AddWaiting(diagnostics.num_waiting(), num_errors);
  }
  return renderer.text();
}

}  // namespace shardc
