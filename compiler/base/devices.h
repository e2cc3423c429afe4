// What is known of each device that a plan can be made for, as data: the rows of schemas/devices.def.
#pragma once

#include <array>
#include <cstdint>

#include "compiler/base/enum.h"
#include "compiler/base/recipe_words.h"

namespace shardc {

enum class DeviceFamily : uint8_t {
#define FAMILY(Name, meaning) Name,
#include "schemas/devices.def"
};

/// How kernels of the family Cpu cut their work. Part of a plan's meaning: scratch has these sizes, and bits depend on
/// the cuts. All counts are of elements.
struct CpuBlocks {
  /// Rows of c, and columns, of one block product.
  int64_t gemm_block = 0;
  /// Rows of a block product whose operands are bf16.
  int64_t gemm_paired_rows = 0;
  /// Terms of the inner sum in one block product, of operands of 4 bytes; twice as many of operands of 2 bytes.
  int64_t gemm_depth = 0;
  /// Panels of a task, each of gemm_block columns at most; up to four times as many of less depth.
  int64_t gemm_task_panels = 0;
  int64_t gemm_task_rows = 0;
  /// Rows of c, or columns, that one call of a library that takes whole operands computes at least: each call packs the
  /// other operand again.
  int64_t gemm_least_range = 0;
  int64_t gemm_most_ranges = 0;
  /// Rows of a tile of scores: an even number, as are its columns.
  int64_t attention_query_tile = 0;
  /// Rows of queries, of all heads that share keys, that meet a tile of keys once it is packed.
  int64_t attention_query_rows = 0;
  int64_t attention_key_tile = 0;
  /// Divides attention_key_tile.
  int64_t attention_backward_query_tile = 0;

  friend constexpr auto operator==(const CpuBlocks&, const CpuBlocks&) -> bool = default;
};

struct DeviceFacts {
  DeviceFamily family = DeviceFamily::Cpu;
  /// A run decides which of its family it is, by what the machine has.
  bool is_open = false;
  /// Offsets of buffers are multiples of this many bytes.
  int64_t offset_alignment = 0;
  CpuBlocks blocks;
  /// Streams run side by side; else ops run one after another, in the order of the list.
  bool overlaps_streams = false;
  /// The pass fuse runs: an op that does what several do saves passes over memory.
  bool fuses_ops = false;
  /// Products of f32 are calls of a library that takes whole operands.
  bool products_of_f32_by_library = false;
};

constexpr auto FactsOf(Device device) -> DeviceFacts {
  constexpr std::array<DeviceFacts, EnumNames<Device>::names.size()> Facts{
#define DEVICE(Name, word, Family, ...) DeviceFacts{.family = DeviceFamily::Family, __VA_ARGS__},
#include "schemas/devices.def"
  };
  return Facts[static_cast<size_t>(device)];
}

/// Returns true if a plan for the device `open` may run as one for the device `decided`.
constexpr auto Serves(const DeviceFacts& open, const DeviceFacts& decided) -> bool {
  return open.family == decided.family && open.offset_alignment == decided.offset_alignment &&
         open.blocks == decided.blocks && open.overlaps_streams == decided.overlaps_streams;
}
static_assert(Serves(FactsOf(Device::Cpu), FactsOf(Device::CpuAvx512)));
static_assert(Serves(FactsOf(Device::Cpu), FactsOf(Device::CpuPortable)));
static_assert(Serves(FactsOf(Device::Cuda), FactsOf(Device::CudaSm90)));

}  // namespace shardc
