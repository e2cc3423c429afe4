// The report for people: one screen, units with every number.
#include <algorithm>
#include <set>

#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/table.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/checkpoint/stage.h"
#include "compiler/cost/fold.h"
#include "compiler/cost/preset_use.h"
#include "compiler/fit/fit_text.h"
#include "compiler/ops/cuda/attention.h"
#include "compiler/plan/exchange.h"
#include "compiler/plan/init_rule.h"
#include "compiler/report/document_lines.h"
#include "compiler/report/report.h"
#include "compiler/report/text_sections.h"

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

/// Returns what one host sends to the others, which its network has to carry. Hosts are alike: each has as many ranks
/// of every group that lies on it.
auto BetweenHostsText(const Report& report) -> std::string {
  const Mesh& mesh = report.plan->mesh;
  if (mesh.hosts == 1) {
    return "";
  }
  Bytes sent;
  for (const Communication& row : report.step_communication) {
    sent += row.group.between_hosts * (mesh.num_ranks() / mesh.size(row.axes)) / mesh.hosts;
  }
  const std::string sums = report.plan->run.comm == Comm::NcclRing
                               ? fmt::format(
                                     "  NCCL sums over the hosts (`auto` leaves it to NCCL beyond {}): the bits are "
                                     "its own, and hang on its "
                                     "version\n  and on the network\n",
                                     MostExchangingGpus)
                               : "";
  return fmt::format("  each of {} hosts sends {}, {}, to the others per step, and receives as much\n{}", mesh.hosts,
                     FormatMemory(sent), BytesCell(sent), sums);
}

auto CommunicationText(const Report& report) -> std::string {
  if (report.step_communication.empty()) {
    return "communication: none\n";
  }
  Table table("  ");
  const Mesh& mesh = report.plan->mesh;
  std::vector<std::string> head{"op", "axes", "dtype", "count", "payload", "on the wire", "in bytes"};
  if (mesh.hosts > 1) {
    head.emplace_back("between hosts");
  }
  table.Row(head);
  for (const Communication& row : report.step_communication) {
    const Bytes wire = row.wire(mesh);
    std::vector<std::string> cells{std::string(ToText(row.op)),
                                   ToText(row.axes),
                                   std::string(ToText(row.dtype)),
                                   Grouped(row.count),
                                   FormatMemory(row.payload),
                                   FormatMemory(wire),
                                   BytesCell(wire)};
    if (mesh.hosts > 1) {
      cells.push_back(FormatMemory(row.between_hosts(mesh)));
    }
    table.Row(cells);
  }
  return "communication per step and rank\n" + table.Text() + BetweenHostsText(report) + OverlapsText(report.overlaps);
}

auto UnitText(const UnitUse& unit) -> std::string {
  if (unit.num_gathers == 0) {
    return "not gathered: the slice is the whole unit";
  }
  const std::string times = unit.num_gathers == 1   ? "once"
                            : unit.num_gathers == 2 ? "twice"
                                                    : fmt::format("{} times", unit.num_gathers);
  const std::string between = unit.kept_for_backward ? "kept for backward"
                              : unit.kept_slice > Bytes{}
                                  ? fmt::format("a slice of {} kept for backward", FormatMemory(unit.kept_slice))
                                  : "freed after use";
  return fmt::format("gathered {}, {}", times, between);
}

using UnitRow = std::pair<const UnitUse*, std::vector<std::string>>;

/// Returns a table of names and sizes, with what becomes of each unit below it.
auto UnitsOfTwoLines(const std::vector<UnitRow>& rows) -> std::string {
  std::string out;
  for (const auto& [unit, names] : rows) {
    out +=
        Wrapped(fmt::format("  {}: {} of {}, {}", FoldNames(names), Counted(static_cast<int64_t>(names.size()), "unit"),
                            Counted(unit->num_elements, "parameter"), FormatMemory(unit->gathered)),
                4) +
        Wrapped("    " + UnitText(*unit), 6);
  }
  return out;
}

/// Returns the table of units. Units that are alike share a row: a model has many blocks.
auto UnitsText(const Report& report) -> std::string {
  std::vector<UnitRow> rows;
  for (const UnitUse& unit : report.units) {
    const auto is_alike = [&](const auto& row) {
      return row.first->num_elements == unit.num_elements && UnitText(*row.first) == UnitText(unit) &&
             Numbered(row.first->name).pattern == Numbered(unit.name).pattern;
    };
    const auto alike = std::ranges::find_if(rows, is_alike);
    if (alike == rows.end()) {
      rows.push_back({&unit, {unit.name}});
    } else {
      alike->second.push_back(unit.name);
    }
  }
  Table table("  ");
  for (const auto& [unit, names] : rows) {
    table.Row({FoldNames(names), Counted(static_cast<int64_t>(names.size()), "unit"),
               Counted(unit->num_elements, "parameter"), FormatMemory(unit->gathered), UnitText(*unit)});
  }
  std::string out = "FSDP units, and how often each is gathered per step\n";
  const std::string text = table.Text();
  out += LongestLine(text) <= ReportColumns ? text : UnitsOfTwoLines(rows);
  if (report.gather_ring.depth > 0) {
    out += fmt::format("  at once, at most: {} gathered, {}; {} of gradients to reduce, {}\n", report.gather_ring.depth,
                       FormatMemory(report.gather_ring.bytes), report.reduce_ring.depth,
                       FormatMemory(report.reduce_ring.bytes));
  }
  return out;
}

/// Returns what the optimizer keeps beside the parameters: "exp_avg", "exp_avg_sq".
auto KeptMoments(const Plan& plan) -> std::vector<std::string_view> {
  std::vector<std::string_view> kept;
  for (const StateRole role : OptimizerRoles) {
    if (std::ranges::any_of(plan.sub_vectors, [&](const SubVector& own) { return HasRole(own, role); })) {
      kept.push_back(ToText(role));
    }
  }
  return kept;
}

/// Returns the types that units compute in, and in which gradients go to the ranks that sum them. It looks at dp only,
/// over which no activations go.
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
  return fmt::format("{} compute; parameters{} {}sums of gradients in f32{}", fmt::join(computes, ", "),
                     masters.contains("bf16") ? fmt::format(" in {},", fmt::join(masters, " and ")) : ",",
                     KeptMoments(*report.plan).empty() ? "" : "moments and ",
                     terms.contains("bf16") ? fmt::format(", gradients sent in {}", fmt::join(terms, " and ")) : "");
}

/// Returns the lines on sums of gradients; empty if there is one microbatch, or one rank along the axes of the sum.
auto GradientSumsText(const Report& report) -> std::string {
  const auto& [slices, whole, are_whole] = report.gradient_sums;
  if (report.plan->run.accumulate == 1 || slices == whole) {
    return "";
  }
  return Wrapped(
      are_whole
          ? fmt::format("gradients   summed whole over microbatches, {}, reduced on the last; reduced on each, {}",
                        FormatMemory(whole), FormatMemory(slices))
          : fmt::format("gradients   reduced on each microbatch, {}; summed whole and reduced on the last, {}",
                        FormatMemory(slices), FormatMemory(whole)),
      12);
}

/// Returns what run.deterministic = false changes; empty if it is true.
auto OrderText(const Plan& plan) -> std::string {
  if (plan.run.deterministic) {
    return "";
  }
  return Wrapped(
      AddsInAnyOrder(plan)
          ? "bits        attention's backward adds in an order that changes from run to run: two runs, and a "
            "resumed run, differ in their last bits (run.deterministic = false)"
          : "bits        run.deterministic = false changes nothing: each sum of the plan has a fixed order",
      12);
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

/// Returns the checkpoint that a first start begins from, if there is one.
auto StartText(const Report& report) -> std::string {
  const Seed& seed = report.plan->seed;
  if (!seed.is_set()) {
    return "";
  }
  const SeedUse& use = report.seed;
  const std::string read = use.num_read == 0
                               ? ""
                               : fmt::format(", {} ({}) read by rules", Counted(use.num_read, "parameter"),
                                             Counted(use.read_elements, "element"));
  // A plan reads headers alone.
  std::string tied;
  const auto is_tied = report.plan->model.find("tied");
  if (seed.format == SeedFormat::HuggingFace && is_tied != report.plan->model.end() && is_tied->second == "true") {
    for (const auto& [tensor, other] : TiedTensors()) {
      tied += fmt::format("; if there is a tensor {}, the start compares its bits with those of {}", tensor, other);
    }
  }
  const std::string kept = KeptText(*report.plan);
  const std::string moments =
      use.num_with_moments == 0 ? "" : fmt::format(", {} with moments", Grouped(use.num_with_moments));
  const std::string unused = use.unused.empty() ? "" : fmt::format("; not used: {}", fmt::join(use.unused, ", "));
  std::string text =
      Wrapped(fmt::format("start       {} {}{}, {}: {} ({}) loaded{}{}{}, {} ({}) generated{}{}; a rank loads {}{}",
                          kept.empty() ? "seed" : "continues", seed.path,
                          seed.adapter.empty() ? "" : " with " + seed.adapter_path, ToText(seed),
                          Counted(use.num_loaded, "parameter"), Counted(use.loaded_elements, "element"), moments,
                          ConversionsOf(*report.plan), read, Counted(use.num_generated, "parameter"),
                          Counted(use.generated_elements, "element"), tied, unused, FormatMemory(use.read_by_rank),
                          kept.empty() ? "" : "; " + kept),
              12);
  for (const std::string& change : use.changes) {
    text += Wrapped(fmt::format("{:12}{}", "", change), 14);
  }
  return text;
}

/// Returns the schedules; nothing for a schedule that is one number.
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
  std::string out = Wrapped(
      fmt::format(
          "FLOPs per step: {} on all ranks, {} per rank (2mnk per matrix product; causal attention counted half{})",
          on_all(report.flops.model), FormatFlops(report.flops.model),
          report.plan->data.splits_documents() ? ", as if each sample were one document: at most" : ""),
      2);
  if (report.flops.recompute.value > 0) {
    out += fmt::format("  and recomputation: {} on all ranks, {} per rank\n", on_all(report.flops.recompute),
                       FormatFlops(report.flops.recompute));
  }
  if (report.time) {
    out += StepTimeText(*report.time, *report.plan);
  }
  return out;
}

/// Returns "weight decay 0.1 for 12 parameters, 0 and learning rate x 0.5 for 9 parameters".
auto GroupsText(const Plan& plan) -> std::string {
  std::vector<std::string> texts;
  for (int32_t i = 0; i < plan.groups.size(); ++i) {
    const GroupId id{i};
    const OptimizerGroup& group = plan.groups[id];
    const auto updated = std::ranges::count_if(
        plan.parameters, [&](const Parameter& parameter) { return parameter.group == id && parameter.trainable; });
    if (updated > 0) {
      texts.push_back(fmt::format("{}{} for {}", group.weight_decay,
                                  group.lr_scale == 1 ? "" : fmt::format(" and learning rate x {}", group.lr_scale),
                                  Counted(updated, "parameter")));
    }
  }
  return fmt::format("weight decay {}", fmt::join(texts, ", "));
}

/// Returns "adamw, which keeps exp_avg and exp_avg_sq; " and the groups.
auto OptimizerText(const Plan& plan) -> std::string {
  const std::vector<std::string_view> kept = KeptMoments(plan);
  return fmt::format("{}, which keeps {}; {}", ToText(plan.run.optimizer),
                     kept.empty() ? "nothing" : fmt::format("{}", fmt::join(kept, " and ")), GroupsText(plan));
}

/// Returns "1,000 steps, 65,536,000 tokens, 0.222 hours by the estimate; a checkpoint has 89.7 GiB, and the newest 2
/// are kept".
auto RunText(const Report& report) -> std::string {
  const RunSettings& run = report.plan->run;
  int64_t tokens = 0;
  const std::string all =
      __builtin_mul_overflow(run.steps, run.tokens_per_step, &tokens)
          ? fmt::format("{:.6g} tokens", static_cast<double>(run.steps) * static_cast<double>(run.tokens_per_step))
          : Counted(tokens, "token");
  const std::string kept = run.checkpoint_keep == 0   ? "all are kept"
                           : run.checkpoint_keep == 1 ? "the newest is kept"
                                                      : fmt::format("the newest {} are kept", run.checkpoint_keep);
  const std::string each = run.keep_every > 0 ? fmt::format(", one of every {} for good", run.keep_every) : "";
  const std::string steps =
      run.keep_steps.empty() ? "" : fmt::format(", of steps {} for good", fmt::join(run.keep_steps, ", "));
  const std::string hours =
      report.time ? fmt::format(", {} by the estimate", HoursText(report.time->run(run.steps))) : "";
  const std::string base =
      report.in_base == Bytes{} ? "" : fmt::format(" beside the {} of the base", FormatMemory(report.in_base));
  return fmt::format("{}, {}{}; a checkpoint has {}{}, and {}{}{}", Counted(run.steps, "step"), all, hours,
                     FormatMemory(report.checkpoint), base, kept, each, steps);
}

}  // namespace

auto RenderReportText(const Report& report) -> std::string {
  const Plan& plan = *report.plan;
  const int64_t sequences = SamplesPerStep(plan);
  const int64_t replicas = sequences / (plan.run.micro_batch * plan.run.accumulate);
  const auto line = [](std::string_view name, const std::string& text) {
    return Wrapped(fmt::format("{:<12}{}", name, text), 12);
  };
  const std::string microbatches =
      plan.run.accumulate == 1 ? "1 microbatch" : fmt::format("{} microbatches", plan.run.accumulate);
  return line("plan", report.plan_hash) + PresetText(report.preset, plan) + line("model", ModelText(plan)) +
         line("mesh", MeshText(plan.mesh)) +
         line("parameters", fmt::format("{} in all, {} per rank (padding included)", Grouped(report.parameters_total),
                                        Grouped(report.parameters_per_rank))) +
         SharesText(report) + line("precision", PrecisionText(report)) + line("loss", LossText(report.loss)) +
         line("optimizer", OptimizerText(plan)) +
         line("batch", fmt::format("{} per step = {} per rank and microbatch x {} x {}; {} per step",
                                   Counted(sequences, "sequence"), plan.run.micro_batch, microbatches,
                                   Counted(replicas, plan.mesh.size(Axis::Tp) == 1 ? "rank" : "tp group"),
                                   Counted(plan.run.tokens_per_step, "token"))) +
         line("run", RunText(report)) + OrderText(plan) + GradientSumsText(report) + StartText(report) + "\n" +
         MemoryText(report) + "\n" + StepMemoryChart(report) + "\n" + BlocksText(report) + "\n" +
         CommunicationText(report) + "\n" + FlopsText(report) + "\n" + UnitsText(report) + "\n" +
         DataText(plan, report.mixture) + DocumentLines(plan, report.documents) + InitText(report) +
         SchedulesText(report) + (report.fit ? "\n" + RenderFitText(*report.fit) : "");
}

}  // namespace shardc
