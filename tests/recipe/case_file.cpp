#include "tests/recipe/case_file.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "compiler/check/check_recipe.h"
#include "compiler/passes/pipeline.h"
#include "tests/support/text_lines.h"

namespace shardc {

static auto SplitWords(const std::string& line) -> std::vector<std::string> {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  for (const char c : line + " ") {
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && c == '"') {
      quote = c;
    } else if (quote == 0 && c == ' ') {
      if (!word.empty()) {
        words.push_back(word);
      }
      word.clear();
    } else {
      word += c;
    }
  }
  return words;
}

auto IsExpectation(std::string_view line) -> bool {
  const std::string_view trimmed = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  return trimmed.starts_with("# expect: ") || trimmed.starts_with("# note: ") || trimmed.starts_with("# help: ");
}

auto ParseCase(const std::string& name, const std::string& file_text) -> RecipeCase {
  constexpr std::string_view run = "# run: check";
  RecipeCase result;
  result.name = name;
  for (const std::string& line : LinesOf(file_text)) {
    if (IsExpectation(line)) {
      continue;
    }
    result.text += line + "\n";
    if (line.starts_with(run)) {
      const std::vector<std::string> words = SplitWords(line.substr(run.size()));
      for (size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "--strict") {
          result.is_strict = true;
        } else if (words[i] == "--set" && i + 1 < words.size()) {
          result.overrides.push_back(words[++i]);
        }
      }
    }
  }
  return result;
}

auto RunCase(const RecipeCase& recipe_case, const std::string& text, CaseResult& result) -> void {
  // What a case names lies relative to it.
  std::filesystem::current_path(SHARDC_SOURCE_DIR "/tests/recipe");
  auto whole = PutOverBase(SHARDC_SOURCE_DIR "/tests/recipe", text);
  if (!whole) {
    result.internal_error = whole.error().message;
    return;
  }
  result.whole = *std::move(whole);
  result.diagnostics.set_strict(recipe_case.is_strict);
  auto recipe =
      ReadAndCheck(recipe_case.name, result.whole.text, recipe_case.overrides, result.sources, result.diagnostics);
  if (!recipe || result.diagnostics.has_errors()) {
    return;
  }
  result.is_read = true;
  result.recipe = *recipe;
  if (const auto plan = Compile(*recipe, {}, result.diagnostics); !plan) {
    result.internal_error = plan.error().message;
  }
}

/// Puts expectations into the text that has none, or reads them off the text that has them.
class Expectations {
 public:
  explicit Expectations(const CaseResult& result) : whole_(result.whole) {
    for (const Diagnostic& diagnostic : result.diagnostics.all()) {
      ordered_.push_back(&diagnostic);
    }
    std::ranges::stable_sort(ordered_, {}, [&](const Diagnostic* diagnostic) {
      return std::tuple(HomeLine(*diagnostic), diagnostic->at.source, diagnostic->at.column);
    });
  }

  auto Lines() const -> std::vector<std::string> {
    std::vector<std::string> lines;
    for (const Diagnostic* diagnostic : ordered_) {
      for (std::string& line : LinesFor(*diagnostic)) {
        lines.push_back(std::move(line));
      }
    }
    return lines;
  }

  auto PutInto(const std::string& text) -> std::string {
    const std::vector<std::string> lines = LinesOf(text);
    int32_t num_inserted = 0;
    size_t next = 0;
    for (int32_t line = 1; line <= static_cast<int32_t>(lines.size()); ++line) {
      for (; next < ordered_.size() && HomeLine(*ordered_[next]) <= line; ++next) {
        num_inserted += static_cast<int32_t>(LinesFor(*ordered_[next]).size());
      }
      line_of_[line] = line + num_inserted;
    }
    std::string result;
    next = 0;
    for (int32_t line = 1; line <= static_cast<int32_t>(lines.size()); ++line) {
      for (; next < ordered_.size() && HomeLine(*ordered_[next]) <= line; ++next) {
        for (const std::string& expectation : LinesFor(*ordered_[next])) {
          result += expectation + "\n";
        }
      }
      result += lines[static_cast<size_t>(line - 1)] + "\n";
    }
    return result;
  }

 private:
  auto Place(const SourceRange& at) const -> std::string {
    if (!at.valid() || at.line < 1) {
      return "";
    }
    if (at.source != 0) {
      return fmt::format("--set:{}:{} ", at.line, at.column);
    }
    const LineSource source = whole_.SourceOf(at.line);
    if (source.is_of_base) {
      return fmt::format("{}:{}:{} ", whole_.base, source.line, at.column);
    }
    const auto found = line_of_.find(source.line);
    return fmt::format("{}:{} ", found == line_of_.end() ? source.line : found->second, at.column);
  }

  auto LinesFor(const Diagnostic& diagnostic) const -> std::vector<std::string> {
    std::vector<std::string> lines;
    lines.push_back(fmt::format("# expect: {} {} {}{}", diagnostic.severity == Severity::Error ? "error" : "warning",
                                RowOf(diagnostic.kind).name, Place(diagnostic.at), diagnostic.text));
    for (const DiagnosticNote& note : diagnostic.notes) {
      lines.push_back(fmt::format("# note: {}{}", Place(note.at), note.text));
    }
    if (!diagnostic.help.empty()) {
      lines.push_back(fmt::format("# help: {}", diagnostic.help));
    }
    return lines;
  }

  /// Returns the line of the file above which a diagnostic is written; 1 for those without a line of it.
  auto HomeLine(const Diagnostic& diagnostic) const -> int32_t {
    const LineSource source = whole_.SourceOf(diagnostic.at.line);
    return diagnostic.at.source == 0 && diagnostic.at.line >= 1 && !source.is_of_base ? source.line : 1;
  }

  const WholeRecipe& whole_;
  /// As their lines stand in the file.
  std::vector<const Diagnostic*> ordered_;
  /// The line of the file by the line before expectations are put in; empty if they are in it already.
  std::map<int32_t, int32_t> line_of_;
};

auto WithExpectations(const RecipeCase& recipe_case, const CaseResult& result) -> std::string {
  return Expectations(result).PutInto(recipe_case.text);
}

auto ExpectationLines(const CaseResult& result) -> std::vector<std::string> { return Expectations(result).Lines(); }

}  // namespace shardc
