// The report as one page: the figures of the report as pictures, made here, and the report for programs in an element
// of its own. The page loads nothing. Words are HTML and never parts of a picture, so that a narrow page scales the
// pictures alone.

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/cost/fold.h"
#include "compiler/fit/fit_text.h"
#include "compiler/report/html_style.h"
#include "compiler/report/report.h"

namespace shardc {

namespace {

auto Escaped(std::string_view text) -> std::string {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

auto Share(Bytes part, Bytes whole) -> double {
  return whole == Bytes{} ? 0 : static_cast<double>(part.value) / static_cast<double>(whole.value);
}

auto PageSection(std::string_view title, const std::string& body) -> std::string {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", Escaped(title), body);
}

/// Returns a table of cells that are HTML; the first row is the head. It scrolls by itself if it is too wide.
auto HtmlTable(const std::vector<std::vector<std::string>>& rows) -> std::string {
  std::string out = "<div class=\"wide\"><table>\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    out += "<tr>";
    for (const std::string& cell : rows[i]) {
      out += fmt::format("<{0}>{1}</{0}>", i == 0 ? "th" : "td", cell);
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

/// Returns a name in a cell, which a narrow page may break.
auto Name(std::string_view name) -> std::string { return fmt::format("<span class=\"name\">{}</span>", Escaped(name)); }

/// Returns the words along an axis from left to right, under a picture.
auto AxisBelow(std::initializer_list<std::string> words) -> std::string {
  return fmt::format("<p class=\"axis ends\"><span>{}</span></p>\n", fmt::join(words, "</span><span>"));
}

/// Returns a picture with the values that its top, middle and bottom stand for on the left.
auto WithAxis(const std::string& picture, std::initializer_list<std::string> top_to_bottom) -> std::string {
  return fmt::format("<div class=\"graph\"><p class=\"axis\"><span>{}</span></p>\n{}</div>\n",
                     fmt::join(top_to_bottom, "</span><span>"), picture);
}

/// Returns a bar in a cell, as long as its share.
auto Bar(double share) -> std::string {
  return fmt::format("<span class=\"bar\"><i style=\"width:{:.2f}%\"></i></span>", share * 100);
}

auto CategoryClass(int category) -> std::string { return fmt::format("c{}", category); }

auto Summary(const Report& report) -> std::string {
  const Plan& plan = *report.plan;
  Bytes wire;
  for (const Communication& row : report.step_communication) {
    wire += row.wire(plan.mesh);
  }
  std::vector<std::pair<std::string, std::string>> cards{
      {fmt::format("memory per rank, of which {} are in use at the peak", FormatMemory(report.peak.use.total())),
       FormatMemory(report.reserved)},
      {"ranks", Grouped(plan.mesh.num_ranks())},
      {"parameters", Grouped(report.parameters_total)},
      {"tokens per step", Grouped(plan.run.tokens_per_step)},
      {"steps", Grouped(plan.run.steps)},
      {"FLOPs per step and rank", FormatFlops(report.flops.all())},
      {"sent per step and rank", FormatMemory(wire)},
      {"a checkpoint", FormatMemory(report.checkpoint)}};
  if (report.time) {
    cards.emplace_back(fmt::format("step on {}, estimated", report.time->machine->name), FormatStep(*report.time));
    cards.emplace_back("the run, estimated, without saves", HoursText(report.time->run(plan.run.steps)));
  }
  std::string out = "<div class=\"cards\">\n";
  for (const auto& [name, value] : cards) {
    out += fmt::format("<div><b>{}</b><span>{}</span></div>\n", Escaped(value), Escaped(name));
  }
  out += "</div>\n";
  return report.time && !CaveatOf(*report.time).empty()
             ? out + fmt::format("<p><small>step: {}</small></p>\n", Escaped(CaveatOf(*report.time)))
             : out;
}

auto FitSection(const FitUse& fit) -> std::string {
  const std::string verdict = RenderFitText(fit);
  std::string out = fmt::format("<p class=\"{}\">{}</p>\n", fit.fits() ? "yes" : "no",
                                Escaped(verdict.substr(0, verdict.find("\n\n"))));
  Bytes most = std::max(fit.budget.bytes, fit.now.reserved);
  for (const KnobRow& row : fit.knobs) {
    most = row.figures ? std::max(most, row.figures->reserved) : most;
  }
  std::vector<std::vector<std::string>> rows{{"memory", "", "fits", "--set", "FLOPs", "on the wire", "step"}};
  const auto add = [&](const PlanFigures& figures, const std::string& sets) {
    rows.push_back({FormatMemory(figures.reserved), Bar(Share(figures.reserved, most)),
                    fit.fits(figures) ? "yes" : "no", Name(sets), FormatFlops(figures.flops.all()),
                    FormatMemory(figures.wire), figures.time ? FormatTime(figures.time->step()) : ""});
  };
  add(fit.now, "(as it is)");
  std::string refused;
  for (const KnobRow& row : fit.knobs) {
    if (row.figures) {
      add(*row.figures, SetsText(row.knob));
    } else {
      refused +=
          fmt::format("<p><small>not {}: {}</small></p>\n", Escaped(SetsText(row.knob)), Escaped(row.knob.refused));
    }
  }
  if (!fit.now.time) {
    std::ranges::for_each(rows, [](auto& row) { row.pop_back(); });
  }
  const std::string found =
      fit.has_recipe ? fmt::format("<pre>{}</pre>\n", Escaped(CheapestText(fit) + LeastRanksText(fit) + GrownText(fit)))
                     : "";
  return PageSection("Does it fit?", out + found + HtmlTable(rows) + refused);
}

auto CategorySection(const Report& report) -> std::string {
  const Bytes total = report.peak.use.total();
  std::string bar = "<div class=\"stack\">";
  std::vector<std::vector<std::string>> rows{{"", "category", "memory", "bytes"}};
  for (int i = 0; i < NumCategories; ++i) {
    const Bytes bytes = report.peak.use.of(static_cast<Category>(i));
    const double share = Share(bytes, total);
    bar += fmt::format("<i class=\"{}\" style=\"width:{:.3f}%\"></i>", CategoryClass(i), share * 100);
    rows.push_back({fmt::format("<i class=\"key {}\"></i>", CategoryClass(i)),
                    std::string(ToText(static_cast<Category>(i))), FormatMemory(bytes), Grouped(bytes.value)});
  }
  rows.push_back({"", "total", FormatMemory(total), Grouped(total.value)});
  return PageSection("Memory per rank, at the peak",
                     fmt::format("<p>In section {}, at op {}: {}</p>\n", ToText(report.peak.section),
                                 report.peak.op_index, Escaped(report.peak.op_summary)) +
                         bar + "</div>\n" + HtmlTable(rows));
}

constexpr int PictureWidth = 720;
constexpr int PictureHeight = 220;

/// Returns one area per category, each on those below it, and a band with the phase of each op.
auto StepPicture(const Report& report) -> std::string {
  const std::vector<MemoryUse>& over_ops = report.memory_over_step;
  const std::vector<Op>& ops = report.plan->section(SectionKind::Step).ops;
  const size_t num_columns = std::min<size_t>(PictureWidth / 2, over_ops.size());
  const Bytes top = std::ranges::max_element(over_ops, {}, &MemoryUse::total)->total();
  const double width = static_cast<double>(PictureWidth) / static_cast<double>(num_columns);
  std::vector<size_t> shown;
  for (size_t column = 0; column < num_columns; ++column) {
    const auto begin = over_ops.begin() + static_cast<ptrdiff_t>(column * over_ops.size() / num_columns);
    const auto end = over_ops.begin() + static_cast<ptrdiff_t>((column + 1) * over_ops.size() / num_columns);
    shown.push_back(static_cast<size_t>(
        std::max_element(begin, end, [](const MemoryUse& a, const MemoryUse& b) { return a.total() < b.total(); }) -
        over_ops.begin()));
  }
  std::string paths;
  std::vector<Bytes> below(num_columns);
  for (int i = 0; i < NumCategories; ++i) {
    const auto y = [&](Bytes bytes) { return PictureHeight * (1 - Share(bytes, top)); };
    std::string upper;
    std::string lower;
    for (size_t column = 0; column < num_columns; ++column) {
      const double left = width * static_cast<double>(column);
      lower =
          fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", left + width, y(below[column]), left, y(below[column])) + lower;
      below[column] += over_ops[shown[column]].of(static_cast<Category>(i));
      upper += fmt::format("{}{:.1f} {:.1f}L{:.1f} {:.1f}", column == 0 ? "M" : "L", left, y(below[column]),
                           left + width, y(below[column]));
    }
    paths += fmt::format("<path class=\"{}\" d=\"{}{}Z\"/>\n", CategoryClass(i), upper, lower);
  }
  std::string band;
  for (size_t column = 0; column < num_columns; ++column) {
    band += fmt::format("<rect class=\"p{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.2f}\" height=\"8\"/>",
                        static_cast<int>(ops[shown[column]].phase), width * static_cast<double>(column),
                        PictureHeight + 4, width + 0.05);
  }
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"memory over the ops of a "
      "step\">\n{}{}\n</svg>\n",
      PictureWidth, PictureHeight + 12, paths, band);
}

auto StepSection(const Report& report) -> std::string {
  if (report.memory_over_step.empty()) {
    return "";
  }
  std::string keys = "<p class=\"keys\">";
  for (int i = 0; i < NumCategories; ++i) {
    keys += fmt::format("<span><i class=\"key {}\"></i>{}</span> ", CategoryClass(i), ToText(static_cast<Category>(i)));
  }
  keys += "</p>\n<p class=\"keys\">band: ";
  for (int i = 0; i < static_cast<int>(CountOf<Phase>()); ++i) {
    keys += fmt::format("<span><i class=\"key p{}\"></i>{}</span> ", i,
                        i == 0 ? "update and other ops" : ToText(static_cast<Phase>(i)));
  }
  const Bytes top = std::ranges::max_element(report.memory_over_step, {}, &MemoryUse::total)->total();
  return PageSection("Memory over the ops of a step",
                     WithAxis(StepPicture(report), {FormatMemory(top), FormatMemory(Bytes{top.value / 2}), "0"}) +
                         AxisBelow({"op 0", "ops in the order in which they run",
                                    fmt::format("op {}", report.memory_over_step.size() - 1)}) +
                         keys + "</p>\n");
}

auto AliveSection(const Report& report) -> std::string {
  constexpr size_t MostRows = 24;
  std::vector<std::vector<std::string>> rows{{"memory", "", "buffer", "blocks", "a key that lowers it"}};
  for (size_t i = 0; i < std::min(MostRows, report.alive_at_peak.size()); ++i) {
    const AliveBuffers& alike = report.alive_at_peak[i];
    rows.push_back({FormatMemory(alike.bytes), Bar(Share(alike.bytes, report.alive_at_peak.front().bytes)),
                    Name(alike.name), FoldNumbers(alike.blocks), "<code>" + alike.key + "</code>"});
  }
  return PageSection("Alive at the peak", HtmlTable(rows));
}

auto BlocksSection(const Report& report) -> std::string {
  std::string out;
  for (const BlockActivations& alike : report.blocks) {
    out += fmt::format("<p>Block{} {}: {} kept for backward</p>\n", alike.blocks.size() == 1 ? "" : "s",
                       FoldNumbers(alike.blocks), FormatMemory(alike.kept()));
    std::vector<std::vector<std::string>> rows{{"memory", "tensor", "after forward", "type", "shape", "op"}};
    for (const BlockTensor& tensor : alike.tensors) {
      rows.push_back({FormatMemory(tensor.bytes), Name(tensor.name), std::string(ToText(tensor.after)),
                      std::string(ToText(tensor.dtype)), ToText(tensor.shape), tensor.ops});
    }
    out += HtmlTable(rows);
  }
  return out.empty() ? "" : PageSection("Results of a block", out);
}

auto CommunicationSection(const Report& report) -> std::string {
  const Mesh& mesh = report.plan->mesh;
  if (report.step_communication.empty()) {
    return PageSection("Communication", "<p>None.</p>\n");
  }
  Bytes most;
  for (const Communication& row : report.step_communication) {
    most = std::max(most, row.wire(mesh));
  }
  std::vector<std::vector<std::string>> rows{{"op", "axes", "type", "count", "payload", "on the wire", ""}};
  for (const Communication& row : report.step_communication) {
    rows.push_back({std::string(ToText(row.op)), ToText(row.axes), std::string(ToText(row.dtype)), Grouped(row.count),
                    FormatMemory(row.payload), FormatMemory(row.wire(mesh)), Bar(Share(row.wire(mesh), most))});
  }
  return PageSection("Communication per step and rank", HtmlTable(rows));
}

/// Returns the table of what is trained and what is frozen; empty if everything is trained.
auto SharesSection(const Report& report) -> std::string {
  if (report.shares.frozen.num_elements == 0) {
    return "";
  }
  std::vector<std::vector<std::string>> rows{
      {"", "parameters", "state per rank", "parameters sent per step", "gradients sent per step"}};
  const auto add = [&](const char* name, const StateShare& share) {
    rows.push_back({name, Grouped(share.num_elements), FormatMemory(share.state), FormatMemory(share.parameters_sent),
                    FormatMemory(share.gradients_sent)});
  };
  add("trained", report.shares.trained);
  add("frozen", report.shares.frozen);
  return PageSection("Trained and frozen", HtmlTable(rows));
}

auto ScheduleSection(const ScheduleUse& schedule) -> std::string {
  std::string points;
  const double steps = static_cast<double>(std::max<int64_t>(schedule.steps - 1, 1));
  std::vector<SchedulePoint> shown = schedule.points;
  shown.push_back(schedule.most);
  std::ranges::sort(shown, {}, &SchedulePoint::step);
  for (const SchedulePoint& point : shown) {
    points +=
        fmt::format("{:.1f},{:.1f} ", static_cast<double>(point.step) / steps * PictureWidth,
                    schedule.most.value > 0 ? PictureHeight * (1 - point.value / schedule.most.value) : PictureHeight);
  }
  std::string out = fmt::format("<p><code>{}</code></p>\n", Escaped(schedule.text));
  if (!schedule.points.empty() && !schedule.is_constant) {
    const std::string picture = fmt::format(
        "<svg viewBox=\"0 -2 {} {}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"schedule of {}\"><polyline "
        "points=\"{}\"/></svg>",
        PictureWidth, PictureHeight + 4, Escaped(schedule.name), points);
    out += WithAxis(picture,
                    {fmt::format("{:.4g}", schedule.most.value), fmt::format("{:.4g}", schedule.most.value / 2), "0"}) +
           AxisBelow({"step 0", fmt::format("most at step {}", schedule.most.step),
                      fmt::format("step {}", schedule.points.back().step)});
  }
  out += schedule.fault.empty() ? "" : fmt::format("<p class=\"no\">{}</p>\n", Escaped(schedule.fault));
  return PageSection(fmt::format("Schedule of {}", schedule.name), out);
}

auto UnitsSection(const Report& report) -> std::string {
  std::vector<std::vector<std::string>> rows{{"unit", "parameters", "gathered", "gathers per step", "after forward"}};
  for (const UnitUse& unit : report.units) {
    rows.push_back({Escaped(unit.name), Grouped(unit.num_elements), FormatMemory(unit.gathered),
                    Grouped(unit.num_gathers),
                    unit.num_gathers == 0    ? "the slice is the whole"
                    : unit.kept_for_backward ? "kept"
                                             : "freed"});
  }
  return PageSection("Units", fmt::format("<details><summary>{}</summary>\n{}</details>\n",
                                          Counted(static_cast<int64_t>(report.units.size()), "unit"), HtmlTable(rows)));
}

auto InitSection(const Report& report) -> std::string {
  std::vector<std::vector<std::string>> rows{{"rule", "parameters", "elements", "first"}};
  for (const InitUse& use : report.init) {
    rows.push_back({"<code>" + Escaped(WithShortNumbers(use.rule)) + "</code>", Grouped(use.num_parameters),
                    Grouped(use.num_elements), Escaped(use.first_parameter)});
  }
  return PageSection("Initial values", fmt::format("<details><summary>{}, seed {}</summary>\n{}</details>\n",
                                                   Counted(static_cast<int64_t>(report.init.size()), "rule"),
                                                   report.plan->run.init_seed, HtmlTable(rows)));
}

}  // namespace

auto RenderReportHtml(const Report& report) -> std::string {
  const std::string text = RenderReportText(report);
  const std::string head = text.substr(0, text.find("\n\n"));
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
      Escaped("shardc: " + report.plan->run.run_id), HtmlStyle());
  out += fmt::format("<h1>{}</h1>\n<pre>{}</pre>\n", Escaped(report.plan->run.run_id), Escaped(head)) + Summary(report);
  out += report.fit ? FitSection(*report.fit) : "";
  out += SharesSection(report) + CategorySection(report) + StepSection(report) + AliveSection(report) +
         BlocksSection(report) + CommunicationSection(report);
  for (const ScheduleUse& schedule : report.schedules) {
    out += ScheduleSection(schedule);
  }
  out += UnitsSection(report) + InitSection(report);
  out += "</main>\n<script type=\"application/json\" id=\"report\">" + RenderReportJson(report) + "</script>\n";
  return out + "</body>\n</html>\n";
}

}  // namespace shardc
