// Rules of [run].

#include "compiler/base/machine_rows.h"
#include "compiler/check/check_context.h"

namespace shardc {

auto CheckRun(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const Located<std::string>& machine = recipe.run.machine;
  if (!machine.is_set || !machine.is_known) {
    return;
  }
  if (FindMachine(*machine) == nullptr) {
    std::vector<std::string_view> known;
    for (const MachineRow& row : MachineRows()) {
      known.push_back(row.name);
    }
    ReportUnknownWord(context, machine.at, "machine", *machine, known);
    context.MarkFaulty(machine);
  } else if (recipe.run.peak_flops.is_set) {
    context.diags()
        .Build(machine.at, DiagnosticKind::KeyHasNoEffect, "machine", "`peak_flops` gives the peak of a rank")
        .Emit();
  }
}

}  // namespace shardc
