#include "runtime/core/run_report.h"

#include "runtime/memory/available_memory.h"

namespace shardc {

auto SourcesText(const TokenReader& tokens, int64_t steps) -> ErrorOr<std::string> {
  const auto uses = tokens.CountRun();
  if (!uses) {
    return uses.error();
  }
  std::string text;
  for (const SourceUse& use : *uses) {
    text += fmt::format("  source {}: {}{} samples in {} steps, {:.2f} epochs of {}\n", use.name,
                        use.is_exact ? "" : "about ", use.samples, steps,
                        static_cast<double>(use.samples) / static_cast<double>(use.epoch_samples), use.epoch_samples);
  }
  return text;
}

auto MemoryText(int64_t rank, const ArenaSet& arenas, const Guard* guard) -> std::string {
  std::string text = fmt::format("memory of rank {}:\n", rank);
  if (guard != nullptr) {
    for (const PageUse& use : guard->MeasurePages()) {
      if (use.with_buffers.value > 0) {
        text += fmt::format("  {:<18} {:>12} B in pages with buffers, {:>12} B in pages that were written\n",
                            ToText(use.arena), use.with_buffers.value, use.written.value);
      }
    }
    return text;
  }
  for (const ArenaUse& use : arenas.MeasureUse()) {
    if (use.planned.value > 0) {
      text += fmt::format("  {:<18} planned {:>12} B, touched {:>12} B\n", ToText(use.arena), use.planned.value,
                          use.touched.value);
    }
  }
  return text + fmt::format("  {:<18} peak    {:>12} B resident\n", "process", MeasurePeakResident().value);
}

}  // namespace shardc
