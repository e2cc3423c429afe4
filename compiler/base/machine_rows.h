// The rows of schemas/machines.def: products that plans and runs are held against.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace shardc {

/// A number, and who says so.
struct Figure {
  double value = 0;
  std::string_view source;
};

/// Shares of a row's figures that ops reach, and seconds that they take besides: the estimate of a step's time is made
/// of them (compiler/cost/op_times.h). docs/explain.md says where each comes from.
struct OpRates {
  struct Attention {
    int64_t head_dim = 0;
    double forward = 0;
    double backward = 0;
  };

  /// Products, of the peak in bf16 and of that in f32.
  double product_bf16 = 0;
  double product_f32 = 0;
  /// Attention by cuDNN, of the peak in bf16, for sequences so long that their ends do not count, by head_dim; and the
  /// length of a sequence that reaches half of it.
  std::array<Attention, 2> attention;
  double half_rate_sequence = 0;
  /// Attention by plain kernels, of the peak in f32.
  double plain_attention = 0;
  /// Bytes of other ops, of the memory's bandwidth.
  double memory = 0;
  /// Bytes of all-gathers and of sums, of the link's bandwidth.
  double gather = 0;
  double reduce = 0;
  double network = 0;

  /// Seconds of the device for each kernel, and of the host to launch an op or to read a number.
  double kernel = 0;
  double launch = 0;
  double read_by_host = 0;
  /// Seconds of device and host for each collective. A collective of NCCL over hosts takes as many steps as their
  /// number has doublings; a message of terms is one to each other host.
  double meetings = 0;
  double host_step = 0;
  double message = 0;
};

struct MachineRow {
  std::string_view name;
  std::string_view product;
  /// Name by which the driver knows it.
  std::string_view card;
  /// Has it Hopper's instructions, which the kernels of shardc-run-cuda take?
  bool runs_plans = true;
  /// Bytes that the driver reports to a program.
  Figure memory;
  /// Operations per second in bf16, without sparsity.
  Figure peak_bf16;
  /// Operations per second in f32, without tensor cores.
  Figure peak_f32;
  /// Bytes per second, of the device's memory.
  Figure memory_bandwidth;
  /// Bytes per second in one direction, to the other devices of the host.
  Figure link_bandwidth;
  /// Bytes per second in one direction, to other hosts, for each device.
  Figure network_bandwidth;
  Figure devices_per_host;
  /// Bytes that driver, collectives and libraries take beside the plan's arenas.
  Figure outside_arenas;
  OpRates rates;
};

auto MachineRows() -> std::span<const MachineRow>;
/// Null if no row has that name.
auto FindMachine(std::string_view name) -> const MachineRow*;
/// Returns the row of a card, as its driver names it; null if no row is that of the card.
auto MachineOfCard(std::string_view card) -> const MachineRow*;

}  // namespace shardc
