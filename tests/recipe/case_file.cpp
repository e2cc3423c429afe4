#include "tests/recipe/case_file.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "compiler/check/check_recipe.h"
#include "compiler/passes/pipeline.h"

namespace shardc {

static auto SplitLines(const std::string& text) -> std::vector<std::string> {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

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

static auto IsExpectation(const std::string& line) -> bool {
  const std::string_view trimmed = std::string_view(line).substr(std::min(line.find_first_not_of(' '), line.size()));
  return trimmed.starts_with("# expect: ") || trimmed.starts_with("# note: ") || trimmed.starts_with("# help: ");
}

auto ParseCase(const std::string& name, const std::string& file_text) -> RecipeCase {
  constexpr std::string_view run = "# run: check";
  RecipeCase result;
  result.name = name;
  for (const std::string& line : SplitLines(file_text)) {
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
  result.diagnostics.set_strict(recipe_case.is_strict);
  auto recipe = ReadAndCheck(recipe_case.name, text, recipe_case.overrides, result.sources, result.diagnostics);
  if (!recipe || result.diagnostics.has_errors()) {
    return;
  }
  result.is_read = true;
  result.recipe = *recipe;
  if (const auto plan = Compile(*recipe, {}, result.diagnostics); !plan) {
    result.internal_error = plan.error().message;
  }
}

static auto Place(const SourceRange& at, const std::map<int32_t, int32_t>& line_of) -> std::string {
  if (!at.valid() || at.line < 1) {
    return "";
  }
  if (at.source != 0) {
    return fmt::format("--set:{}:{} ", at.line, at.column);
  }
  const auto found = line_of.find(at.line);
  return fmt::format("{}:{} ", found == line_of.end() ? at.line : found->second, at.column);
}

static auto LinesOf(const Diagnostic& diagnostic, const std::map<int32_t, int32_t>& line_of)
    -> std::vector<std::string> {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("# expect: {} {} {}{}", diagnostic.severity == Severity::Error ? "error" : "warning",
                              RowOf(diagnostic.kind).name, Place(diagnostic.at, line_of), diagnostic.text));
  for (const DiagnosticNote& note : diagnostic.notes) {
    lines.push_back(fmt::format("# note: {}{}", Place(note.at, line_of), note.text));
  }
  if (!diagnostic.help.empty()) {
    lines.push_back(fmt::format("# help: {}", diagnostic.help));
  }
  return lines;
}

/// The line of the recipe above which a diagnostic is written; 1 for those without a line of it.
static auto HomeLine(const Diagnostic& diagnostic) -> int32_t {
  return diagnostic.at.source == 0 && diagnostic.at.line >= 1 ? diagnostic.at.line : 1;
}

static auto InOrder(const Diagnostics& diagnostics) -> std::vector<const Diagnostic*> {
  std::vector<const Diagnostic*> ordered;
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    ordered.push_back(&diagnostic);
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const Diagnostic* a, const Diagnostic* b) {
    return std::tuple(HomeLine(*a), a->at.source, a->at.column) < std::tuple(HomeLine(*b), b->at.source, b->at.column);
  });
  return ordered;
}

auto ExpectationLines(const Diagnostics& diagnostics) -> std::vector<std::string> {
  std::vector<std::string> lines;
  for (const Diagnostic* diagnostic : InOrder(diagnostics)) {
    for (std::string& line : LinesOf(*diagnostic, {})) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

auto WithExpectations(const RecipeCase& recipe_case, const Diagnostics& diagnostics) -> std::string {
  const std::vector<std::string> lines = SplitLines(recipe_case.text);
  const std::vector<const Diagnostic*> ordered = InOrder(diagnostics);
  // Where each line of the recipe comes to lie once the expectations are in.
  std::map<int32_t, int32_t> line_of;
  int32_t num_inserted = 0;
  size_t next = 0;
  for (int32_t line = 1; line <= static_cast<int32_t>(lines.size()); ++line) {
    for (; next < ordered.size() && HomeLine(*ordered[next]) <= line; ++next) {
      num_inserted += static_cast<int32_t>(LinesOf(*ordered[next], {}).size());
    }
    line_of[line] = line + num_inserted;
  }
  std::string text;
  next = 0;
  for (int32_t line = 1; line <= static_cast<int32_t>(lines.size()); ++line) {
    for (; next < ordered.size() && HomeLine(*ordered[next]) <= line; ++next) {
      for (const std::string& expectation : LinesOf(*ordered[next], line_of)) {
        text += expectation + "\n";
      }
    }
    text += lines[static_cast<size_t>(line - 1)] + "\n";
  }
  return text;
}

}  // namespace shardc
