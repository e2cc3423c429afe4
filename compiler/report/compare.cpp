#include "compiler/report/compare.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/table.h"
#include "compiler/plan/header.h"
#include "compiler/report/json_lines.h"

namespace shardc {

/// Returns the keys of a plan. If no key gives the run an id, the name of the recipe's file does.
static auto KeysWithRunId(const Plan& plan) -> PlanKeys {
  PlanKeys keys = KeysOf(plan);
  keys.start.run_id = keys.start.run_id.value_or(plan.run.run_id);
  return keys;
}

static auto FiguresIn(const Report& report) -> std::vector<FigureChange> {
  std::vector<FigureChange> figures;
  const auto add = [&](FigureKind kind, std::string name, int64_t value) {
    figures.push_back({.kind = kind, .name = std::move(name), .a = value});
  };
  add(FigureKind::Memory, "peak", report.peak.use.total().value);
  for (int i = 0; i < NumCategories; ++i) {
    const auto category = static_cast<Category>(i);
    add(FigureKind::Memory, fmt::format("{} at the peak", ToText(category)), report.peak.use.of(category).value);
  }
  add(FigureKind::Memory, "reserved", report.reserved.value);
  add(FigureKind::Memory, "a checkpoint, of all ranks", report.checkpoint.value);
  for (const Communication& row : report.step_communication) {
    const std::string name = fmt::format("{} {} {}", ToText(row.op), ToText(row.axes), ToText(row.dtype));
    add(FigureKind::Wire, name, row.wire(report.plan->mesh).value);
    add(FigureKind::Count, name, row.count);
    for (FigureChange& figure : std::span(figures).last(2)) {
      figure.is_agreement = row.op == CollectiveKind::Agree;
    }
  }
  add(FigureKind::Flops, "of a step on a rank", report.flops.model.value);
  add(FigureKind::Flops, "recomputed in a step on a rank", report.flops.recompute.value);
  add(FigureKind::Count, "ranks", report.plan->mesh.num_ranks());
  add(FigureKind::Count, "parameters", report.parameters_total);
  add(FigureKind::Count, "tokens per step", report.plan->run.tokens_per_step);
  return figures;
}

static auto FigureChangesOf(const Report& a, const Report& b) -> std::vector<FigureChange> {
  const auto microseconds = [](const StepTime& time) -> int64_t { return std::llround(time.step().value * 1e6); };
  std::vector<FigureChange> all = FiguresIn(a);
  for (const FigureChange& there : FiguresIn(b)) {
    const auto here = std::ranges::find_if(
        all, [&](const FigureChange& figure) { return figure.kind == there.kind && figure.name == there.name; });
    if (here != all.end()) {
      here->b = there.a;
    } else {
      all.push_back({.kind = there.kind, .name = there.name, .a = 0, .b = there.a, .is_agreement = there.is_agreement});
    }
  }
  if (a.time && b.time) {
    all.push_back(
        {.kind = FigureKind::Time, .name = "of a step", .a = microseconds(*a.time), .b = microseconds(*b.time)});
  }
  if (a.shares.frozen.num_elements + b.shares.frozen.num_elements > 0) {
    all.push_back({.kind = FigureKind::Count,
                   .name = "trained parameters",
                   .a = a.shares.trained.num_elements,
                   .b = b.shares.trained.num_elements});
  }
  std::erase_if(all, [](const FigureChange& figure) { return figure.a == figure.b; });
  std::ranges::stable_sort(all, {}, &FigureChange::kind);
  return all;
}

auto Compare(const Report& a, const Report& b) -> Comparison {
  std::vector<KeyDifference> keys = DifferencesOf(KeysWithRunId(*a.plan), KeysWithRunId(*b.plan));
  // One key may give two devices: a run puts that of its machine on record.
  constexpr std::string_view Device = "run.device";
  if (a.plan->device != b.plan->device && std::ranges::find(keys, Device, &KeyDifference::key) == keys.end()) {
    keys.push_back(
        {"run.device, by the machine", std::string(ToText(a.plan->device)), std::string(ToText(b.plan->device))});
  }
  return {.hash_a = a.plan_hash, .hash_b = b.plan_hash, .keys = std::move(keys), .figures = FigureChangesOf(a, b)};
}

static auto FigureText(FigureKind kind, int64_t value) -> std::string {
  switch (kind) {
    case FigureKind::Memory:
    case FigureKind::Wire: return FormatMemory(Bytes{value});
    case FigureKind::Flops: return FormatFlops(Flops{value});
    case FigureKind::Time: return FormatTime(Seconds{static_cast<double>(value) * 1e-6});
    case FigureKind::Count: return Grouped(value);
  }
  CHECK(false, "figure {}", static_cast<int>(kind));
}

static auto DifferenceText(const FigureChange& figure) -> std::string {
  const int64_t difference = figure.b - figure.a;
  const std::string amount = FigureText(figure.kind, difference < 0 ? -difference : difference);
  return fmt::format("{}{}{}", difference < 0 ? "-" : "+", amount,
                     figure.a == 0 ? ""
                                   : fmt::format(" ({:+.1f} %)", 100 * static_cast<double>(difference) /
                                                                     static_cast<double>(figure.a)));
}

static auto TitleOf(FigureKind kind) -> std::string_view {
  switch (kind) {
    case FigureKind::Memory: return "memory per rank";
    case FigureKind::Wire: return "sent per step and rank";
    case FigureKind::Flops: return "FLOPs";
    case FigureKind::Time: return "time, estimated";
    case FigureKind::Count: return "counts; collectives are those of a step on a rank";
  }
  CHECK(false, "figure {}", static_cast<int>(kind));
}

auto RenderComparisonText(const Comparison& comparison) -> std::string {
  if (comparison.is_same()) {
    return fmt::format("the same plan, {}\n", comparison.hash_a);
  }
  std::string out;
  for (const KeyDifference& change : comparison.keys) {
    const auto value = [](const std::string& text) { return text.empty() ? "(unset)" : text; };
    out += Wrapped(fmt::format("  {}  {} -> {}", change.key, value(change.a), value(change.b)), 4);
  }
  out = (out.empty() ? "keys: none differ\n" : "keys\n" + out);
  out += comparison.hash_a == comparison.hash_b ? fmt::format("plan: the same, {}\n", comparison.hash_a)
                                                : fmt::format("plan: {} -> {}\n", comparison.hash_a, comparison.hash_b);
  for (size_t kind = 0; kind < CountOf<FigureKind>(); ++kind) {
    Table table("  ");
    for (const FigureChange& figure : comparison.figures) {
      if (figure.kind == static_cast<FigureKind>(kind) && !figure.is_agreement) {
        table.Row({figure.name, FigureText(figure.kind, figure.a), "->", FigureText(figure.kind, figure.b),
                   DifferenceText(figure)});
      }
    }
    const std::string rows = table.Text();
    out += rows.empty() ? "" : fmt::format("{}\n{}", TitleOf(static_cast<FigureKind>(kind)), rows);
  }
  if (comparison.keys.empty() && comparison.figures.empty()) {
    return out + "the plans differ, but no key and no figure does; compare the two texts of `shardc plan`\n";
  }
  const bool has_rows = !std::ranges::all_of(comparison.figures, &FigureChange::is_agreement);
  return out + (!has_rows ? "no figure of memory, communication or FLOPs differs\n" : "");
}

auto RenderComparisonJson(const Comparison& comparison) -> std::string {
  nlohmann::ordered_json json{{"format_version", "1.0"},
                              {"same", comparison.is_same()},
                              {"plan_hash", {comparison.hash_a, comparison.hash_b}},
                              {"keys", nlohmann::ordered_json::array()},
                              {"figures", nlohmann::ordered_json::array()}};
  const auto value = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
  };
  for (const KeyDifference& change : comparison.keys) {
    json["keys"].push_back({{"key", change.key}, {"a", value(change.a)}, {"b", value(change.b)}});
  }
  for (const FigureChange& figure : comparison.figures) {
    json["figures"].push_back({{"kind", ToText(figure.kind)}, {"name", figure.name}, {"a", figure.a}, {"b", figure.b}});
  }
  return JsonLines(json);
}

}  // namespace shardc
