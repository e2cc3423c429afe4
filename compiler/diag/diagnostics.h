// Collects diagnostics of one stage and renders them. The kinds are the rows of schemas/diagnostics.def; the text of a
// message is its row's format, filled with the arguments in order.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/diag/source.h"

namespace shardc {

enum class Severity { Error, Warning };

/// One enumerator per row of schemas/diagnostics.def: DIAGNOSTIC(Name, "kebab-name", Severity, "format", "long text").
enum class DiagnosticKind : int {
#define DIAGNOSTIC(Name, text, severity, format, help) Name,
#include "schemas/diagnostics.def"
};

struct DiagnosticRow {
  DiagnosticKind kind;
  std::string_view name;
  Severity severity;
  std::string_view format;
  /// Meaning, example, fix: printed by `shardc help NAME` and in docs/errors.md.
  std::string_view help;
};

auto DiagnosticRows() -> const std::vector<DiagnosticRow>&;
auto RowOf(DiagnosticKind kind) -> const DiagnosticRow&;

struct DiagnosticNote {
  SourceRange at;
  std::string text;
};

struct Diagnostic {
  DiagnosticKind kind;
  Severity severity;
  /// May be invalid: then the message has no place in a text (a missing file, say).
  SourceRange at;
  std::string text;
  std::vector<DiagnosticNote> notes;
  /// One sure remedy, or empty. Lines after the first are text to copy.
  std::string help;
};

class Diagnostics {
 public:
  explicit Diagnostics(const SourceSet* sources) : sources_(sources) {}

  class Builder {
   public:
    Builder(Diagnostics* owner, Diagnostic diagnostic) : owner_(owner), diagnostic_(std::move(diagnostic)) {}
    auto Note(const SourceRange& at, std::string text) -> Builder& {
      diagnostic_.notes.push_back({at, std::move(text)});
      return *this;
    }
    auto Help(std::string text) -> Builder& {
      diagnostic_.help = std::move(text);
      return *this;
    }
    auto Emit() -> void { owner_->Add(std::move(diagnostic_)); }

   private:
    Diagnostics* owner_;
    Diagnostic diagnostic_;
  };

  /// Starts a diagnostic: `diags.Build(at, DiagnosticKind::X, 6, 4).Note(...).Help(...).Emit();`
  template <class... Args>
  [[nodiscard]] auto Build(const SourceRange& at, DiagnosticKind kind, const Args&... args) -> Builder {
    const DiagnosticRow& row = RowOf(kind);
    return Builder(this, Diagnostic{.kind = kind,
                                    .severity = row.severity,
                                    .at = at,
                                    .text = fmt::format(fmt::runtime(row.format), args...),
                                    .notes = {},
                                    .help = {}});
  }

  /// Emits a diagnostic without notes and without help.
  template <class... Args>
  auto Report(const SourceRange& at, DiagnosticKind kind, const Args&... args) -> void {
    Build(at, kind, args...).Emit();
  }

  auto Add(Diagnostic diagnostic) -> void;
  /// Adds to the help of those of a kind, after what is there.
  auto AddHelp(DiagnosticKind kind, const std::string& help) -> void;
  auto has_errors() const -> bool { return num_errors_ > 0; }
  auto num_errors() const -> int { return num_errors_; }
  auto all() const -> const std::vector<Diagnostic>& { return all_; }
  auto sources() const -> const SourceSet& { return *sources_; }
  /// Makes every warning an error (`--strict`).
  auto set_strict(bool strict) -> void { strict_ = strict; }
  /// Rules that could not be judged, because a value that they need has an error.
  auto num_waiting() const -> int { return num_waiting_; }
  auto AddWaiting(int num_rules) -> void { num_waiting_ += num_rules; }

 private:
  const SourceSet* sources_;
  std::vector<Diagnostic> all_;
  int num_errors_ = 0;
  int num_waiting_ = 0;
  bool strict_ = false;
};

struct RenderOptions {
  bool color = false;
  /// After this many errors only a count follows, and how to see the rest.
  int max_errors = 100;
};

/// All diagnostics, stably sorted by place (those without one first), as
///
///     recipe.toml:12:9: error: heads is 6, ... [heads-not-divisible]
///        12 | tp = 4
///           |      ^
///     recipe.toml:3:9: note: heads set here
///     help: use tp = 1, 2, 3 or 6
///
/// with `~` under the rest of a longer value. If errors are left out, a line `137 errors, 100 shown; ...` says how to
/// see them. If an error keeps rules from being judged, the last line is `3 more checks wait for these`. Bytes that are
/// not printable ASCII appear escaped (`\u202e`), tabs of the quoted line as spaces; long lines are cut.
auto RenderText(const Diagnostics& diagnostics, const RenderOptions& options) -> std::string;

/// JSON Lines, one object a diagnostic, all of them, in the order of RenderText: severity, name, file, line, column,
/// length, message, notes (each with file, line, column, length, message), help. ASCII only. Without a place, file,
/// line, column and length are null; without a remedy, help is.
auto RenderJson(const Diagnostics& diagnostics) -> std::string;

/// The known word nearest to `word`, the first of equals: distance at most 2 or a third of the word's length, and below
/// the length of the longer of the two; empty if none. The distance counts inserted, left out, changed and swapped
/// neighbouring bytes (Damerau-Levenshtein, optimal string alignment); upper and lower case are the same.
auto ClosestWord(std::string_view word, const std::vector<std::string_view>& known) -> std::string;

/// Is `word` so near to `known` that hardly another word is meant? One slip, or two in six letters or more.
auto IsSlipOf(std::string_view word, std::string_view known) -> bool;

}  // namespace shardc
