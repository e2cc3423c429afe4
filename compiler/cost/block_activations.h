// The results of each block's forward, and what becomes of them until backward.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

/// The fate of a result after forward.
enum class AfterForward : uint8_t { Kept, ComputedAgain, GatheredAgain, Freed };
template <>
struct EnumNames<AfterForward> {
  static constexpr std::array<std::string_view, 4> names{"kept", "computed again", "gathered again", "freed"};
};

struct BlockTensor {
  /// Without the block: "mlp.gate_proj".
  std::string name;
  Dims shape;
  DType dtype = DType::F32;
  Bytes bytes;
  AfterForward after = AfterForward::Freed;
  /// The ops that write it, one over the other: "matmul, rope".
  std::string ops;

  friend auto operator==(const BlockTensor&, const BlockTensor&) -> bool = default;
};

/// Blocks whose results are alike.
struct BlockActivations {
  std::vector<int64_t> blocks;
  std::vector<BlockTensor> tensors;

  /// Returns the bytes that one block keeps from forward to backward.
  auto kept() const -> Bytes;
};

/// Returns the activations of the section step, in the order of the blocks. The results of one buffer are one tensor.
auto BlockActivationsOf(const Plan& plan) -> std::vector<BlockActivations>;

}  // namespace shardc
