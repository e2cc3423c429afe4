// The init rules of a report for people. Rules of blocks that differ in their numbers alone share a row.
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/table.h"
#include "compiler/cost/fold.h"
#include "compiler/cost/preset_use.h"
#include "compiler/report/text_sections.h"

namespace shardc {

namespace {

/// Returns a rule without its numbers: the form that the rules of a scheme's blocks share.
auto WithoutNumbers(std::string_view rule) -> std::string {
  std::string text;
  for (const char c : rule) {
    const bool is_number = (c >= '0' && c <= '9') || c == '.';
    text += !is_number ? std::string(1, c) : text.ends_with('#') ? "" : "#";
  }
  return text;
}

/// Rules that differ in their numbers alone, block by block.
struct InitRow {
  InitUse use;
  std::string last_rule;
  int64_t num_rules = 1;
};

auto InitRowsOf(const Report& report) -> std::vector<InitRow> {
  std::vector<InitRow> rows;
  for (const InitUse& use : report.init) {
    const auto is_alike = [&](const InitRow& row) {
      return row.use.recipe_line == use.recipe_line && WithoutNumbers(row.use.rule) == WithoutNumbers(use.rule) &&
             Numbered(use.first_parameter).number &&
             Numbered(row.use.first_parameter).pattern == Numbered(use.first_parameter).pattern;
    };
    const auto alike = std::ranges::find_if(rows, is_alike);
    if (alike == rows.end()) {
      rows.push_back({.use = use, .last_rule = use.rule});
    } else {
      alike->last_rule = use.rule;
      alike->num_rules += 1;
      alike->use.num_parameters += use.num_parameters;
      alike->use.num_elements += use.num_elements;
    }
  }
  return rows;
}

/// Returns the cells of a rule: its parameters and their elements, its place, and the first of the parameters.
auto InitCells(const PresetUse& preset, const InitRow& row) -> std::vector<std::string> {
  const std::string place = RulePlaceText(preset, row.use.recipe_line);
  return {Counted(row.use.num_parameters, "parameter"), Counted(row.use.num_elements, "element"),
          place.empty() ? "-" : place, row.use.first_parameter + (row.use.num_parameters > 1 ? ", ..." : "")};
}

}  // namespace

auto InitText(const Report& report) -> std::string {
  const std::vector<InitRow> rows = InitRowsOf(report);
  Table table("  ");
  std::string two_lines;
  for (const InitRow& row : rows) {
    const std::string rule = WithShortNumbers(row.use.rule);
    const std::string last =
        row.num_rules == 1 ? "" : fmt::format(" ... {}, {} rules", WithShortNumbers(row.last_rule), row.num_rules);
    std::vector<std::string> cells = InitCells(report.preset, row);
    two_lines += Wrapped("  " + rule + last, 6) + ClippedLines(fmt::format("    {}", fmt::join(cells, "  ")));
    cells.insert(cells.begin(), rule + last);
    table.Row(std::move(cells));
  }
  const std::string one_line = table.Text();
  return fmt::format("init, seed {}\n", report.plan->run.init_seed) +
         (LongestLine(one_line) <= ReportColumns ? one_line : two_lines);
}

}  // namespace shardc
