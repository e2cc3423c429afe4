// What the report says of memory, for people: the peak, what is alive there, a block, a chart of a step.

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "compiler/base/devices.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/table.h"
#include "compiler/cost/fold.h"
#include "compiler/ops/communicators.h"
#include "compiler/ops/cpu/outside_arenas.h"
#include "compiler/report/text_sections.h"

namespace shardc {

static auto OutsideText(const Plan& plan) -> std::string {
  const OutsideArenas outside = OutsideArenasOf(plan);
  const std::string threads = outside.threads > Bytes{} ? fmt::format(", {} of it for run.threads = {}",
                                                                      FormatMemory(outside.threads), plan.run.threads)
                                                        : "";
  const std::string ranks = plan.mesh.hosts > 1 ? fmt::format("each host has {}", Counted(outside.num_ranks, "rank"))
                            : outside.num_ranks == 1
                                ? "one host has the one rank"
                                : fmt::format("one host has all {}", Counted(outside.num_ranks, "rank"));
  const bool is_gpu = FactsOf(plan.device).family == DeviceFamily::Cuda;
  const NcclCommunicators communicators = NcclCommunicatorsOf(plan);
  const std::string of_gpu =
      communicators.count == 0
          ? ""
          : fmt::format("  outside the arenas, in memory of the GPU, about:\n    {} per rank for {} of NCCL\n",
                        FormatMemory(communicators.bytes()), Counted(communicators.count, "communicator"));
  return of_gpu + fmt::format(
                      "  outside the arenas, {}about:\n    {} per host for libraries, heap and the plan\n   "
                      " {} per rank{}\n"
                      "    {} per host of pages of the program's files, which the kernel may drop\n"
                      "    {} where {}\n",
                      is_gpu ? "in memory of the host, " : "", FormatMemory(outside.host() - OutsideArenas::Files),
                      FormatMemory(outside.rank()), threads, FormatMemory(OutsideArenas::Files),
                      FormatMemory(outside.all()), ranks);
}

/// Returns the largest buffers that are alive at the peak, with the keys that lower them.
static auto AliveText(const Report& report) -> std::string {
  constexpr size_t MostRows = 12;
  Table table("    ");
  Bytes rest;
  for (size_t i = 0; i < report.alive_at_peak.size(); ++i) {
    const AliveBuffers& alike = report.alive_at_peak[i];
    if (i >= MostRows) {
      rest += alike.bytes;
      continue;
    }
    std::string name = alike.name.starts_with("model.") ? alike.name.substr(6) : alike.name;
    if (!alike.blocks.empty()) {
      name += fmt::format(" of {}", FoldNumbers(alike.blocks));
    }
    table.Row({FormatMemory(alike.bytes), alike.key.empty() ? "-" : alike.key, name});
  }
  std::string out = "  alive there, and a key that lowers it:\n";
  out += ClippedLines(table.Text());
  return rest == Bytes{}
             ? out
             : out + fmt::format("    and {} in {} more\n", FormatMemory(rest), report.alive_at_peak.size() - MostRows);
}

auto MemoryText(const Report& report) -> std::string {
  const Plan& plan = *report.plan;
  std::string out = fmt::format("memory per rank, at the peak: {} in section {}\n  at op {}: {}\n",
                                FormatMemory(report.peak.use.total()), ToText(report.peak.section),
                                report.peak.op_index, report.peak.op_summary);
  const auto row = [](std::string name, Bytes bytes) {
    return std::vector<std::string>{std::move(name), FormatMemory(bytes), BytesCell(bytes)};
  };
  Table categories("  ");
  for (int i = 0; i < NumCategories; ++i) {
    const auto category = static_cast<Category>(i);
    categories.Row(row(std::string(ToText(category)), report.peak.use.of(category)));
  }
  categories.Row(row("total", report.peak.use.total()));
  out += categories.Text() + AliveText(report);

  Table sections("    ");
  for (const MemoryPeak& peak : report.section_peaks) {
    if (peak.section != report.peak.section) {
      sections.Row(row(std::string(ToText(peak.section)), peak.use.total()));
    }
  }
  out += "  peaks of the other sections:\n" + sections.Text();

  Table arenas("    ");
  for (int i = 0; i < NumArenas; ++i) {
    if (const int64_t bytes = plan.arena_bytes[static_cast<size_t>(i)]; bytes > 0) {
      std::vector<std::string> cells = row(std::string(ToText(static_cast<Arena>(i))), Bytes{bytes});
      if (static_cast<Arena>(i) == Arena::Gathered) {
        cells.emplace_back("one copy for all ranks of the host");
      }
      arenas.Row(cells);
    }
  }
  arenas.Row(row("total", report.reserved));
  out += "  reserved, by arena:\n" + arenas.Text();
  return out + OutsideText(plan);
}

auto BlocksText(const Report& report) -> std::string {
  constexpr size_t MostTables = 4;
  std::string out;
  for (size_t i = 0; i < std::min(MostTables, report.blocks.size()); ++i) {
    const BlockActivations& alike = report.blocks[i];
    out += fmt::format("block{} {}: {} of the results of forward kept for backward\n",
                       alike.blocks.size() == 1 ? "" : "s", FoldNumbers(alike.blocks), FormatMemory(alike.kept()));
    Table table("  ");
    table.Row({"tensor", "type", "bytes", "after forward", "op"});
    for (const BlockTensor& tensor : alike.tensors) {
      table.Row({tensor.name, fmt::format("{}[{}]", ToText(tensor.dtype), fmt::join(tensor.shape, ",")),
                 FormatMemory(tensor.bytes), std::string(ToText(tensor.after)), tensor.ops});
    }
    out += ClippedLines(table.Text());
  }
  if (report.blocks.size() > MostTables) {
    out +=
        fmt::format("and {} more tables of other blocks: --format json has them\n", report.blocks.size() - MostTables);
  }
  return out;
}

/// Returns the first of the ops that a column of a chart stands for.
static auto ColumnBegin(size_t column, size_t num_columns, size_t num_ops) -> size_t {
  return column * num_ops / num_columns;
}

auto StepMemoryChart(const Report& report) -> std::string {
  constexpr size_t MostColumns = 80;
  constexpr size_t NumRows = 8;
  const std::vector<MemoryUse>& over_ops = report.memory_over_step;
  const std::vector<Op>& ops = report.plan->section(SectionKind::Step).ops;
  if (over_ops.empty()) {
    return "";
  }
  const size_t num_columns = std::min(MostColumns, over_ops.size());
  const Bytes top = std::ranges::max_element(over_ops, {}, &MemoryUse::total)->total();
  const Bytes state = PersistentUse(*report.plan).total();
  const auto height = [&](Bytes bytes) {
    return top == Bytes{} ? 0.0 : static_cast<double>(bytes.value) / static_cast<double>(top.value) * NumRows;
  };
  std::vector<std::string> rows(NumRows, std::string(num_columns, ' '));
  std::string phases;
  for (size_t column = 0; column < num_columns; ++column) {
    const size_t begin = ColumnBegin(column, num_columns, over_ops.size());
    const size_t end = ColumnBegin(column + 1, num_columns, over_ops.size());
    size_t most = begin;
    for (size_t i = begin; i < end; ++i) {
      most = over_ops[i].total() > over_ops[most].total() ? i : most;
    }
    for (size_t row = 0; row < NumRows; ++row) {
      // A row is drawn from its middle on.
      const double middle = static_cast<double>(row) + 0.5;
      rows[row][column] = height(over_ops[most].total()) < middle ? ' ' : height(state) < middle ? '#' : ':';
    }
    constexpr std::array Letters{'u', 'f', 'b', 'r'};
    phases += Letters[static_cast<size_t>(ops[most].phase)];
  }
  const std::string label = FormatMemory(top);
  std::string out = fmt::format("memory over the {} of a step\n", Counted(static_cast<int64_t>(over_ops.size()), "op"));
  for (size_t row = NumRows; row-- > 0;) {
    std::string line = fmt::format("  {:>{}} |{}", row + 1 == NumRows ? label : "", label.size(), rows[row]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  out += fmt::format("  {:>{}} +{}\n  {:>{}}  {}\n", "0", label.size(), std::string(num_columns, '-'), "", label.size(),
                     phases);
  return out + "  : state, # the rest; f forward, b backward, r recomputed, u update and other ops\n";
}

}  // namespace shardc
