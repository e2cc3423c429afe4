#include "compiler/ops/cuda/kernel_limits.h"

#include "compiler/ops/op_support.h"

namespace shardc {

/// Blocks of a launch along its first dim, and along each other one. Source: CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability".
static constexpr int64_t MostBlocks = INT32_MAX;
static constexpr int64_t MostBlocksAcross = 65'535;
/// Elements that a block of an elementwise kernel takes at least.
static constexpr int64_t ElementsOfBlock = 256;

/// Returns the product of the fact's dims in its unit. Requires: the op has the field and these dims.
static auto SizeOf(const LaunchFact& fact, const OpBody& body, const Plan& plan) -> int64_t {
  const Dims& shape = ShapeOf(plan, ValueIn(body, fact.field));
  int64_t size = 1;
  for (size_t dim = fact.begin; dim < fact.end; ++dim) {
    size *= shape[dim];
  }
  return fact.unit.empty() ? size : size / *AttributeOf<int64_t>(body, fact.unit);
}

auto FindKernelLimit(const OpBody& body, const Plan& plan) -> std::optional<KernelLimit> {
  std::optional<KernelLimit> found;
  if (FactsOf(plan.device).family != DeviceFamily::Cuda) {
    return found;
  }
  const auto expect = [&](std::string_view what, int64_t size, int64_t most) {
    if (!found && size > most) {
      found = {.what = what, .size = size, .most = most};
    }
  };
  for (const LaunchFact& fact : FactsOf(body).launch) {
    if (!fact.field.empty()) {
      expect(fact.what, SizeOf(fact, body, plan), MostBlocksAcross * fact.of_block);
    }
  }
  for (const Access& access : AccessesOf(body)) {
    if (ElementsOf(plan, access.value) <= MostBlocks) {
      continue;
    }
    if (ShapeOf(plan, access.value).size() > 1) {
      // A row may be a block's, and cuBLASLt counts rows and columns in 31 bits.
      const Matrix matrix = AsMatrix(plan, access.value);
      expect("rows", matrix.rows, MostBlocks);
      expect("columns", matrix.columns, MostBlocks);
    }
    expect("elements", ElementsOf(plan, access.value), MostBlocks * ElementsOfBlock);
  }
  return found;
}

}  // namespace shardc
