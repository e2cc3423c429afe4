#include "compiler/ops/plan_limits.h"

#include "compiler/base/plan_limits.h"
#include "compiler/ops/cuda/kernel_limits.h"
#include "compiler/plan/text.h"

namespace shardc {

/// Bytes of `shape`, as a real number, which never overflows.
static auto BytesOf(const Dims& shape, DType dtype) -> double {
  double bytes = static_cast<double>(SizeOf(dtype));
  for (const int64_t size : shape) {
    bytes *= static_cast<double>(size);
  }
  return bytes;
}

auto FindBrokenLimit(const Plan& plan) -> std::optional<BrokenLimit> {
  constexpr auto Most = static_cast<double>(MostBytes);
  if (plan.num_ops() > MostOps) {
    return BrokenLimit{fmt::format("the plan has {} ops", plan.num_ops()), MostOps};
  }
  if (plan.scalars.size() > MostScalars) {
    return BrokenLimit{fmt::format("the plan has {} scalars", plan.scalars.size()), MostScalars};
  }
  for (const Parameter& parameter : plan.parameters) {
    if (const double bytes = BytesOf(parameter.shape, parameter.dtype); bytes > Most) {
      return BrokenLimit{
          fmt::format("the parameter {} {} has {:.0f} bytes", parameter.name, ToText(parameter.shape), bytes),
          MostBytes, true};
    }
  }
  for (const Value& value : plan.values) {
    if (const double bytes = BytesOf(value.shape, value.dtype); bytes > Most) {
      return BrokenLimit{fmt::format("the value {} {} has {:.0f} bytes", value.name, ToText(value.shape), bytes),
                         MostBytes};
    }
  }
  for (const SubVector& sub_vector : plan.sub_vectors) {
    if (sub_vector.length > MostBytes / 8) {
      return BrokenLimit{fmt::format("the parameters of unit {} have {} elements", plan.units[sub_vector.unit].name,
                                     sub_vector.length),
                         MostBytes / 8};
    }
  }
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.bytes.value > MostBytes) {
      return BrokenLimit{fmt::format("the buffer {} has {} bytes", buffer.name, buffer.bytes.value), MostBytes};
    }
  }
  for (const int64_t bytes : plan.arena_bytes) {
    if (bytes > MostBytes) {
      return BrokenLimit{fmt::format("an arena of a rank has {} bytes", bytes), MostBytes};
    }
  }
  for (const Section& section : plan.sections) {
    for (const Op& op : section.ops) {
      if (const auto limit = FindKernelLimit(op.body, plan)) {
        return BrokenLimit{
            fmt::format("on {} the op {} has {} {}", ToText(plan.device), ToText(op.kind()), limit->size, limit->what),
            limit->most};
      }
    }
  }
  return std::nullopt;
}

}  // namespace shardc
