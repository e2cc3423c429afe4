// The report for people: one screen, units with every number.
#include <algorithm>
#include <set>

#include "compiler/explain/explain.h"
#include "compiler/explain/preset_use.h"
#include "compiler/explain/table.h"
#include "compiler/ops/outside_arenas.h"

namespace shardc {

namespace {

auto MeshText(const Mesh& mesh) -> std::string {
  std::string text;
  for (int i = 0; i < NumMeshAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (mesh.size(axis) > 1) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", ToText(axis), mesh.size(axis));
    }
    for (int p = NumMeshAxes; p < NumAxes; ++p) {
      const auto part = static_cast<Axis>(p);
      if (WholeOf(part) == axis && mesh.size(part) > 1) {
        text += fmt::format(" = {} x {} {}", mesh.size(axis) / mesh.size(part), ToText(part), mesh.size(part));
      }
    }
  }
  const std::string hosts = mesh.hosts == 1 ? "" : fmt::format(" on {} hosts", mesh.hosts);
  return text.empty() ? "1 rank" : fmt::format("{} ({} ranks{})", text, mesh.num_ranks(), hosts);
}

/// 852992 as "852,992".
auto Grouped(int64_t n) -> std::string {
  std::string digits = std::to_string(n);
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > (n < 0 ? 1 : 0); i -= 3) {
    digits.insert(static_cast<size_t>(i), 1, ',');
  }
  return digits;
}

auto ModelText(const Plan& plan) -> std::string {
  const auto at = [&](const char* key) {
    const auto found = plan.model.find(key);
    return found == plan.model.end() ? "" : found->second;
  };
  // What a family lacks is not said.
  const auto part = [&](std::string_view name, const char* key) {
    return at(key).empty() ? "" : fmt::format(", {} {}", name, at(key));
  };
  return fmt::format("{}, {} blocks", at("family"), at("layers")) + part("hidden", "hidden") + part("heads", "heads") +
         fmt::format(" / {} kv of {}", at("kv_heads"), at("head_dim")) + part("ffn", "ffn") + part("vocab", "vocab") +
         part("seq", "seq") + (at("tied") == "true" ? ", tied" : "");
}

/// "1 rank", "2 ranks".
auto Counted(int64_t n, std::string_view noun) -> std::string {
  return fmt::format("{} {}{}", Grouped(n), noun, n == 1 ? "" : "s");
}

auto BytesCell(Bytes bytes) -> std::string { return Grouped(bytes.value) + " B"; }

auto OutsideText(const Plan& plan) -> std::string {
  const OutsideArenas outside = OutsideArenasOf(plan);
  const std::string threads = outside.threads > Bytes{} ? fmt::format(", {} of it for run.threads = {}",
                                                                      FormatMemory(outside.threads), plan.run.threads)
                                                        : "";
  return fmt::format(
      "  outside the arenas, about: {} per host for the program, its libraries and the plan, {} per rank{}; {} where "
      "{}\n",
      FormatMemory(outside.host()), FormatMemory(outside.rank()), threads, FormatMemory(outside.all()),
      plan.mesh.hosts > 1      ? fmt::format("each host has {}", Counted(outside.num_ranks, "rank"))
      : outside.num_ranks == 1 ? "one host has the one rank"
                               : fmt::format("one host has all {}", Counted(outside.num_ranks, "rank")));
}

auto MemoryText(const Report& report) -> std::string {
  const Plan& plan = *report.plan;
  std::string out = fmt::format("memory per rank, at the peak: {} in section {}\n  at op {}: {}\n",
                                FormatMemory(report.peak.use.total()), ToText(report.peak.section),
                                report.peak.op_index, report.peak.op_summary);
  const auto row = [](std::string name, Bytes bytes) {
    return std::vector<std::string>{std::move(name), BytesCell(bytes), FormatMemory(bytes)};
  };
  Table categories("  ");
  for (int i = 0; i < NumCategories; ++i) {
    categories.Row(
        row(std::string(ToText(static_cast<Category>(i))), report.peak.use.by_category[static_cast<size_t>(i)]));
  }
  categories.Row(row("total", report.peak.use.total()));
  out += categories.Text();

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

/// What one host sends to the others, which its network has to carry. Hosts are alike: each has as many ranks of every
/// group that lies on it.
auto BetweenHostsText(const Report& report) -> std::string {
  const Mesh& mesh = report.plan->mesh;
  if (mesh.hosts == 1) {
    return "";
  }
  Bytes sent;
  for (const Communication& row : report.step_communication) {
    sent += row.group.between_hosts * (mesh.num_ranks() / mesh.size(row.axes)) / mesh.hosts;
  }
  return fmt::format("  each of {} hosts sends {} to the others per step, and receives as much\n", mesh.hosts,
                     BytesCell(sent));
}

auto CommunicationText(const Report& report) -> std::string {
  if (report.step_communication.empty()) {
    return "communication: none\n";
  }
  Table table("  ");
  const Mesh& mesh = report.plan->mesh;
  std::vector<std::string> head{"op", "axes", "dtype", "count", "payload", "on the wire"};
  if (mesh.hosts > 1) {
    head.emplace_back("between hosts");
  }
  table.Row(head);
  for (const Communication& row : report.step_communication) {
    std::vector<std::string> cells{std::string(ToText(row.op)), ToText(row.axes),       std::string(ToText(row.dtype)),
                                   Grouped(row.count),          BytesCell(row.payload), BytesCell(row.wire(mesh))};
    if (mesh.hosts > 1) {
      cells.push_back(BytesCell(row.between_hosts(mesh)));
    }
    table.Row(cells);
  }
  return "communication per step and rank\n" + table.Text() + BetweenHostsText(report);
}

auto UnitText(const UnitUse& unit) -> std::string {
  if (unit.num_gathers == 0) {
    return "not gathered: the slice is the whole unit";
  }
  const std::string times = unit.num_gathers == 1   ? "once"
                            : unit.num_gathers == 2 ? "twice"
                                                    : fmt::format("{} times", unit.num_gathers);
  const std::string between = unit.kept_for_backward      ? "kept from forward to backward"
                              : unit.kept_slice > Bytes{} ? fmt::format("a slice of {} kept from forward to backward",
                                                                        FormatMemory(unit.kept_slice))
                                                          : "freed after use";
  return fmt::format("gathered {} per step, {}", times, between);
}

/// Units that are alike share a row: a model has many blocks.
auto UnitsText(const Report& report) -> std::string {
  const auto alike = [](const UnitUse& a, const UnitUse& b) {
    return a.num_elements == b.num_elements && UnitText(a) == UnitText(b);
  };
  Table table("  ");
  for (size_t i = 0; i < report.units.size();) {
    size_t end = i + 1;
    while (end < report.units.size() && alike(report.units[i], report.units[end])) {
      ++end;
    }
    const UnitUse& unit = report.units[i];
    table.Row({end - i == 1 ? unit.name : fmt::format("{} ... {}", unit.name, report.units[end - 1].name),
               Counted(static_cast<int64_t>(end - i), "unit"), Counted(unit.num_elements, "parameter"),
               FormatMemory(unit.gathered), UnitText(unit)});
    i = end;
  }
  std::string out = "units: parameters that are gathered together\n" + table.Text();
  if (report.gather_ring.depth > 0) {
    out += fmt::format("  at once, at most: {} gathered, {}; {} of gradients to reduce, {}\n", report.gather_ring.depth,
                       FormatMemory(report.gather_ring.bytes), report.reduce_ring.depth,
                       FormatMemory(report.reduce_ring.bytes));
  }
  return out;
}

/// What units compute in, and what goes to the ranks that sum it, each over dp, where activations do not go.
auto PrecisionText(const Report& report) -> std::string {
  std::set<std::string_view> computes;
  for (const SubVector& sub_vector : report.plan->sub_vectors) {
    computes.insert(ToText(sub_vector.compute));
  }
  std::set<std::string_view> terms;
  for (const Communication& row : report.step_communication) {
    if (row.op == CollectiveKind::ReduceScatter && row.axes.Has(Axis::Dp)) {
      terms.insert(ToText(row.dtype));
    }
  }
  std::set<std::string_view> masters;
  for (const Parameter& parameter : report.plan->parameters) {
    masters.insert(ToText(parameter.dtype));
  }
  bool keeps_moments = false;
  for (const SubVector& sub_vector : report.plan->sub_vectors) {
    for (const StateRole role : StateRoles) {
      keeps_moments = keeps_moments || (role != StateRole::Parameter && HasRole(sub_vector, role));
    }
  }
  return fmt::format("{} compute; parameters{} {}sums of gradients in f32{}", fmt::join(computes, ", "),
                     masters.contains("bf16") ? fmt::format(" in {},", fmt::join(masters, " and ")) : ",",
                     keeps_moments ? "moments and " : "",
                     terms.contains("bf16") ? fmt::format(", gradients sent in {}", fmt::join(terms, " and ")) : "");
}

/// Empty if there is one microbatch, or one rank along the axes of the sum.
auto GradientSumsText(const Report& report) -> std::string {
  const auto& [slices, whole, are_whole] = report.gradient_sums;
  if (report.plan->run.accumulate == 1 || slices == whole) {
    return "";
  }
  return are_whole
             ? fmt::format(
                   "gradients   summed whole over microbatches, {}, reduced on the last; reduced on each, "
                   "{}\n",
                   FormatMemory(whole), FormatMemory(slices))
             : fmt::format("gradients   reduced on each microbatch, {}; summed whole and reduced on the last, {}\n",
                           FormatMemory(slices), FormatMemory(whole));
}

auto LossText(const LossUse& loss) -> std::string {
  std::string text =
      fmt::format("logits in {}{}", loss.chunks == 1 ? "one chunk of " : fmt::format("{} chunks of ", loss.chunks),
                  FormatMemory(loss.logits));
  for (size_t i = 0; i < loss.heads.size(); ++i) {
    text += fmt::format("{}{} of {} ids", i == 0 ? "; targets from files for " : ", ", loss.heads[i].name,
                        loss.heads[i].vocab);
  }
  return text;
}

/// What a first start begins from, where that is a checkpoint.
auto StartText(const Report& report) -> std::string {
  const Seed& seed = report.plan->seed;
  if (!seed.is_set()) {
    return "";
  }
  const SeedUse& use = report.seed;
  return fmt::format("start       seed {}, step {} of run {}: {} ({}) loaded, {} ({}) generated\n", seed.path,
                     seed.step, seed.run_id, Counted(use.num_loaded, "parameter"),
                     Counted(use.loaded_elements, "element"), Counted(use.num_generated, "parameter"),
                     Counted(use.generated_elements, "element"));
}

/// Empty if the plan reads one stream.
auto MixtureText(const Report& report) -> std::string {
  const Plan& plan = *report.plan;
  const MixtureUse& mixture = report.mixture;
  if (mixture.sources.empty()) {
    return "";
  }
  Table table("  ");
  // A weight may begin with a digit: it is text all the same.
  table.KeepLeft(1);
  table.Row({"source", "weight", "samples", "of all"});
  for (const SourceShare& source : mixture.sources) {
    table.Row({source.name, source.weight, Grouped(source.samples), fmt::format("{:.3f} %", source.fraction * 100)});
  }
  std::string out = fmt::format("data: samples by weight, {} per step, in {}{}\n", Grouped(SamplesPerStep(plan)),
                                Counted(plan.run.steps, "step"), mixture.is_exact ? "" : ", about");
  out += mixture.fault.empty() ? table.Text() : fmt::format("  {}\n", mixture.fault);
  return out + "\n";
}

auto InitText(const Report& report) -> std::string {
  Table table("  ");
  for (const InitUse& use : report.init) {
    // The rule may begin with a digit: it is text all the same, and stands in front.
    table.Row({use.rule, Counted(use.num_parameters, "parameter"), Counted(use.num_elements, "element"),
               RulePlaceText(*report.plan, use.recipe_line),
               use.first_parameter + (use.num_parameters > 1 ? ", ..." : "")});
  }
  return fmt::format("init, seed {}\n", report.plan->run.init_seed) + table.Text();
}

/// Empty for a schedule that is one number.
auto SchedulesText(const Report& report) -> std::string {
  std::string out;
  for (const ScheduleUse& schedule : report.schedules) {
    if (schedule.is_constant && schedule.fault.empty()) {
      continue;
    }
    out += fmt::format("\nschedule of {}, {}\n", schedule.name, Counted(schedule.steps, "step"));
    if (!schedule.points.empty()) {
      out += ChartText(schedule);
      out += fmt::format("  {:.4g} at step {}, most {:.4g} at step {}, {:.4g} at step {}\n",
                         schedule.points.front().value, schedule.points.front().step, schedule.most.value,
                         schedule.most.step, schedule.points.back().value, schedule.points.back().step);
    }
    if (!schedule.fault.empty()) {
      out += fmt::format("  no learning rate {}\n", schedule.fault);
    }
  }
  return out;
}

auto FlopsText(const Report& report) -> std::string {
  const auto ranks = static_cast<double>(report.plan->mesh.num_ranks());
  const auto on_all = [&](Flops flops) { return FormatFlops(static_cast<double>(flops.value) * ranks); };
  std::string out =
      fmt::format("FLOPs per step: {} on all ranks, {} per rank (2mnk per product, causal attention half)\n",
                  on_all(report.model_flops), FormatFlops(report.model_flops));
  if (report.recompute_flops.value > 0) {
    out += fmt::format("  and recomputation: {} on all ranks\n", on_all(report.recompute_flops));
  }
  return out;
}

}  // namespace

/// "adamw, which keeps exp_avg and exp_avg_sq".
static auto OptimizerText(const Plan& plan) -> std::string {
  std::string kept;
  for (const StateRole role : StateRoles) {
    const bool is_kept =
        role != StateRole::Parameter && std::ranges::any_of(plan.sub_vectors, [&](const SubVector& sub_vector) {
          return StateOf(sub_vector, role).valid();
        });
    kept += is_kept ? fmt::format("{}{}", kept.empty() ? "" : " and ", ToText(role)) : "";
  }
  return fmt::format("{}, which keeps {}", ToText(plan.run.optimizer), kept.empty() ? "nothing" : kept);
}

auto RenderReportText(const Report& report) -> std::string {
  const Plan& plan = *report.plan;
  const int64_t sequences = SamplesPerStep(plan);
  const int64_t replicas = sequences / (plan.run.micro_batch * plan.run.accumulate);
  return fmt::format("plan        {}\n", report.plan_hash) + PresetText(PresetUseOf(plan)) +
         fmt::format("model       {}\n", ModelText(plan)) + fmt::format("mesh        {}\n", MeshText(plan.mesh)) +
         fmt::format("parameters  {} in all{}, {} per rank (padding included)\n", Grouped(report.parameters_total),
                     report.parameters_trainable == report.parameters_total
                         ? ""
                         : fmt::format(", {} trained", Grouped(report.parameters_trainable)),
                     Grouped(report.parameters_per_rank)) +
         fmt::format("precision   {}\n", PrecisionText(report)) +
         fmt::format("loss        {}\n", LossText(report.loss)) + fmt::format("optimizer   {}\n", OptimizerText(plan)) +
         fmt::format("batch       {} per step = {} per rank and microbatch x {} x {}; {} per step\n",
                     Counted(sequences, "sequence"), plan.run.micro_batch,
                     plan.run.accumulate == 1 ? "1 microbatch" : fmt::format("{} microbatches", plan.run.accumulate),
                     Counted(replicas, plan.mesh.size(Axis::Tp) == 1 ? "rank" : "tp group"),
                     Counted(plan.run.tokens_per_step, "token")) +
         GradientSumsText(report) + StartText(report) + "\n" + MemoryText(report) + "\n" + CommunicationText(report) +
         "\n" + FlopsText(report) + "\n" + UnitsText(report) + "\n" + MixtureText(report) + InitText(report) +
         SchedulesText(report);
}

}  // namespace shardc
