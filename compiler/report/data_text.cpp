// The lines of the report on data: the samples that the run takes from each source, and where the token files are here,
// their tokens, the samples of an epoch and the epochs of the run.
#include <algorithm>
#include <string_view>

#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/table.h"
#include "compiler/cost/source_shares.h"

namespace shardc {

static auto WithCommas(int64_t n) -> std::string {
  std::string digits = std::to_string(n);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<size_t>(i), 1, ',');
  }
  return digits;
}

static auto Several(int64_t n, std::string_view noun) -> std::string {
  return fmt::format("{} {}{}", WithCommas(n), noun, n == 1 ? "" : "s");
}

/// Returns the cells about the contents of the files; a dash in each if the files are not here.
static auto FileCells(const SourceShare& source) -> std::vector<std::string> {
  if (!source.is_known) {
    return {"-", "-", "-"};
  }
  return {WithCommas(source.tokens), WithCommas(source.epoch_samples), fmt::format("{:.2f}", source.epochs())};
}

/// Returns a cell of at most so many characters; the report is as wide as ReportColumns.
static auto CellOf(const std::string& text, size_t most) -> std::string {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

static auto MixtureTable(const MixtureUse& use) -> std::string {
  constexpr size_t MostOfName = 20;
  const bool any_known =
      std::any_of(use.sources.begin(), use.sources.end(), [](const SourceShare& source) { return source.is_known; });
  const size_t most_of_weight = any_known ? 18 : 40;
  Table table("  ");
  // A weight may begin with a digit: it is text all the same.
  table.KeepLeft(1);
  std::vector<std::string> head{"source", "weight", "samples", "of all"};
  if (any_known) {
    head.insert(head.end(), {"tokens", "samples per epoch", "epochs"});
  }
  table.Row(head);
  for (const SourceShare& source : use.sources) {
    std::vector<std::string> row{CellOf(source.name, MostOfName), CellOf(source.weight, most_of_weight),
                                 WithCommas(source.samples), fmt::format("{:.3f} %", source.fraction * 100)};
    if (any_known) {
      const std::vector<std::string> cells = FileCells(source);
      row.insert(row.end(), cells.begin(), cells.end());
    }
    table.Row(row);
  }
  std::string text = table.Text();
  for (const SourceShare& source : use.sources) {
    if (source.weight.size() > most_of_weight || source.name.size() > MostOfName) {
      text += Wrapped(fmt::format("  weight of {}: {}", source.name, source.weight), 4);
    }
  }
  return text;
}

/// Returns a line on the files of data.eval; empty if the recipe names none.
static auto EvalText(const DataSource& data) -> std::string {
  if (!data.has_eval_files()) {
    return "";
  }
  const int64_t samples = data.packs() ? data.eval_file_samples : (data.eval_file_tokens - 1) / data.seq;
  return fmt::format("  evaluation: {} in files of their own, {}\n", Several(data.eval_file_tokens, "token"),
                     Several(samples, "sample"));
}

auto DataText(const Plan& plan, const MixtureUse& use) -> std::string {
  const std::string steps = Several(plan.run.steps, "step");
  const std::string samples = Several(SamplesPerStep(plan), "sample");
  if (plan.data.is_synthetic()) {
    return fmt::format("data: made ({}), {} per step, in {}; no files, no epochs\n\n", ToText(plan.data.synthetic),
                       samples, steps);
  }
  if (use.sources.empty()) {
    return "";
  }
  if (!plan.data.is_mixture()) {
    const SourceShare& stream = use.sources.front();
    Table table("  ");
    table.Row({"tokens", "samples per epoch", "samples", "epochs"});
    std::vector<std::string> row = FileCells(stream);
    row.insert(row.begin() + 2, WithCommas(stream.samples));
    table.Row(row);
    return fmt::format("data: one stream, {} per step, in {}\n{}{}\n", samples, steps, table.Text(),
                       EvalText(plan.data));
  }
  return fmt::format("data: samples by weight, {} per step, in {}{}\n{}{}\n", WithCommas(SamplesPerStep(plan)), steps,
                     use.is_exact ? "" : ", about",
                     use.fault.empty() ? MixtureTable(use) : fmt::format("  {}\n", use.fault), EvalText(plan.data));
}

}  // namespace shardc
