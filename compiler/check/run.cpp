// Rules of [run].

#include "compiler/base/devices.h"
#include "compiler/base/machine_rows.h"
#include "compiler/base/mapped.h"
#include "compiler/check/check_context.h"
#include "compiler/plan/exchange.h"

namespace shardc {

/// Returns the word for the same way to communicate on the other kind of device.
static auto TwinOf(Comm comm) -> Comm {
  switch (comm) {
    case Comm::Auto:
    case Comm::Shm: break;
    case Comm::Gloo: return Comm::Nccl;
    case Comm::GlooFlat: return Comm::NcclFlat;
    case Comm::Nccl:
    case Comm::NcclRing: return Comm::Gloo;
    case Comm::NcclFlat: return Comm::GlooFlat;
  }
  return comm;
}

/// Reports settings that the device does not support, or does not read.
static auto CheckDevice(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const auto& device = recipe.run.device;
  if (!context.IsSound(device)) {
    return;
  }
  if (const auto& comm = recipe.run.comm; context.IsSound(comm) && !ServesFamily(*comm, FactsOf(*device).family)) {
    context.diags()
        .Build(comm.at, DiagnosticKind::DeviceComm, ToText(Comm{*comm}), ToText(Device{*device}))
        .Note(device.at, fmt::format("`{}` set here", "device"))
        .Help(fmt::format("use comm = \"{}\"", ToText(TwinOf(*comm))))
        .Emit();
  }
  const MeshSection& mesh = recipe.mesh;
  if (const auto& comm = recipe.run.comm;
      context.IsSound(comm) && context.IsSound(mesh.hosts, mesh.replicate, mesh.dp, mesh.tp)) {
    const int64_t exchanging = *comm == Comm::Nccl       ? *mesh.hosts
                               : *comm == Comm::NcclFlat ? *mesh.replicate * *mesh.dp * *mesh.tp
                                                         : 1;
    if (exchanging > MostExchangingGpus) {
      context.diags().Report(comm.at, DiagnosticKind::CommManyHosts, ToText(Comm{*comm}), exchanging,
                             MostExchangingGpus);
    }
  }
  if (FactsOf(*device).family == DeviceFamily::Cpu) {
    if (const auto& fixed = recipe.run.deterministic; fixed.is_set && context.IsSound(fixed) && !*fixed) {
      context.diags().Report(
          fixed.at, DiagnosticKind::KeyHasNoEffect, "deterministic",
          fmt::format("`device` is \"{}\", and each sum on a CPU has a fixed order", ToText(Device{*device})));
    }
    return;
  }
  if (const auto& into = recipe.shard.gather_into; context.IsSound(into) && *into == GatherInto::Host) {
    context.diags()
        .Build(into.at, DiagnosticKind::DeviceHostGather, ToText(Device{*device}))
        .Note(device.at, fmt::format("`{}` set here", "device"))
        .Help("use gather_into = \"rank\"")
        .Emit();
  }
  if (const auto& kernels = recipe.run.kernels; context.IsSound(kernels) && *kernels == KernelSet::Reference) {
    context.diags()
        .Build(kernels.at, DiagnosticKind::DeviceReference, ToText(Device{*device}))
        .Note(device.at, fmt::format("`{}` set here", "device"))
        .Help("use device = \"cpu\" with the reference kernels")
        .Emit();
  }
}

auto CheckRun(CheckContext& context) -> void {
  CheckDevice(context);
  const Recipe& recipe = context.recipe();
  const Located<std::string>& machine = recipe.run.machine;
  if (!machine.is_set || !machine.is_known) {
    return;
  }
  if (FindMachine(*machine) == nullptr) {
    const auto known = Mapped<std::string_view>(MachineRows(), &MachineRow::name);
    ReportUnknownWord(context, machine.at, "machine", *machine, known);
    context.MarkFaulty(machine);
  } else if (recipe.run.peak_flops.is_set) {
    context.diags().Report(machine.at, DiagnosticKind::KeyHasNoEffect, "machine",
                           "`peak_flops` gives the peak of a rank");
  }
}

}  // namespace shardc
