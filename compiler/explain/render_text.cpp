// The report for people: one screen, units with every number.
#include "compiler/explain/explain.h"

namespace shardc {

namespace {

auto MeshText(const Mesh& mesh) -> std::string {
  std::string text;
  for (int i = 0; i < NumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (mesh.size(axis) > 1) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", ToText(axis), mesh.size(axis));
    }
  }
  return text.empty() ? "1 rank" : fmt::format("{} ({} ranks)", text, mesh.num_ranks());
}

/// 852992 as "852,992".
auto Grouped(int64_t n) -> std::string {
  std::string digits = std::to_string(n);
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > (n < 0 ? 1 : 0); i -= 3) {
    digits.insert(static_cast<size_t>(i), ",");
  }
  return digits;
}

auto ModelText(const Plan& plan) -> std::string {
  const auto at = [&](const char* key) { return plan.model.at(key); };
  return fmt::format("{}, {} blocks, hidden {}, heads {} / {} kv of {}, ffn {}, vocab {}, seq {}{}", at("family"),
                     at("layers"), at("hidden"), at("heads"), at("kv_heads"), at("head_dim"), at("ffn"), at("vocab"),
                     at("seq"), at("tied") == "true" ? ", tied" : "");
}

}  // namespace

auto RenderReportText(const Report& report) -> std::string {
  const Plan& plan = *report.plan;
  std::string out;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    out += fmt::format(format, std::forward<Args>(args)...);
    out += '\n';
  };
  line("plan {}", report.plan_hash);
  line("model       {}", ModelText(plan));
  line("mesh        {}", MeshText(plan.mesh));
  line("parameters  {} in all, {} a rank (padding included)", Grouped(report.parameters_total),
       Grouped(report.parameters_per_rank));
  const int64_t sequences = plan.run.tokens_per_step / plan.data.seq;
  line("batch       {} sequences a step = {} a rank and microbatch x {} microbatches x {} ranks; {} tokens a step", sequences,
       plan.run.micro_batch, plan.run.accumulate, sequences / (plan.run.micro_batch * plan.run.accumulate),
       Grouped(plan.run.tokens_per_step));
  line("");

  line("memory a rank, at the peak: {} in section {}", FormatMemory(report.peak.use.total()), ToText(report.peak.section));
  line("  at op {}: {}", report.peak.op_index, report.peak.op_text);
  for (int i = 0; i < NumCategories; ++i) {
    const Bytes bytes = report.peak.use.by_category[static_cast<size_t>(i)];
    line("  {:<12} {:>16} B  {:>10}", ToText(static_cast<Category>(i)), Grouped(bytes.value), FormatMemory(bytes));
  }
  line("  {:<12} {:>16} B  {:>10}", "total", Grouped(report.peak.use.total().value), FormatMemory(report.peak.use.total()));
  line("  other sections:");
  for (const MemoryPeak& peak : report.section_peaks) {
    if (peak.section != report.peak.section) {
      line("    {:<10} {:>16} B  {:>10}", ToText(peak.section), Grouped(peak.use.total().value),
           FormatMemory(peak.use.total()));
    }
  }
  line("  reserved, by arena:");
  for (int i = 0; i < NumArenas; ++i) {
    if (const int64_t bytes = plan.arena_bytes[static_cast<size_t>(i)]; bytes > 0) {
      line("    {:<18} {:>14} B  {:>10}", ToText(static_cast<Arena>(i)), Grouped(bytes), FormatMemory(Bytes{bytes}));
    }
  }
  line("    {:<18} {:>14} B  {:>10}", "total", Grouped(report.reserved.value), FormatMemory(report.reserved));
  line("  outside the arenas: about {} for the program and its libraries", FormatMemory(ProgramMemory));
  line("");

  line("communication a step and rank");
  line("  {:<15} {:<10} {:<5} {:>6} {:>16} {:>16}", "op", "axes", "dtype", "count", "payload", "on the wire");
  for (const Communication& row : report.step_communication) {
    line("  {:<15} {:<10} {:<5} {:>6} {:>14} B {:>14} B", ToText(row.op), ToText(row.axes), ToText(row.dtype), row.count,
         Grouped(row.payload.value), Grouped(row.wire.value));
  }
  line("");

  const int64_t ranks = plan.mesh.num_ranks();
  line("FLOPs a step: {} on all ranks, {} a rank (2mnk a product, causal attention half)",
       FormatFlops(report.model_flops * ranks), FormatFlops(report.model_flops));
  if (report.recompute_flops.value > 0) {
    line("  and recomputation: {} on all ranks", FormatFlops(report.recompute_flops * ranks));
  }
  line("");

  line("units (gathered together)");
  for (const UnitUse& unit : report.units) {
    line("  {:<12} {:>14} parameters  {:>10} gathered  {}", unit.name, Grouped(unit.num_elements),
         FormatMemory(unit.gathered), unit.reshard_after_forward ? "freed after forward" : "kept until backward");
  }
  line("");

  line("init, seed {}", plan.run.init_seed);
  for (const InitUse& use : report.init) {
    line("  {:<24} {:>4} parameters, {:>14} elements  recipe:{}  {}{}", use.rule, use.num_parameters,
         Grouped(use.num_elements), use.recipe_line, use.first_parameter, use.num_parameters > 1 ? ", ..." : "");
  }
  return out;
}

}  // namespace shardc
