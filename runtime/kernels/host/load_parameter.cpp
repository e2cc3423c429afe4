// load_parameter: the owned elements of one parameter, out of the seed; the rest of the slice stays as it is.
#include "compiler/plan/init_rule.h"
#include "runtime/kernels/host/host.h"
#include "runtime/kernels/host/load_owned.h"

namespace shardc::host {

auto Bind(const op::LoadParameter& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  const Parameter& parameter = plan.parameters[op.parameter];
  const auto block = LoadedBlockOf(parameter);
  const SeedTensor* const tensor = block ? plan.seed.Find(block->tensor) : nullptr;
  CHECK(tensor != nullptr, "{} is loaded: {}", parameter.name, parameter.init);
  return LoadOwned(op, binder,
                   [block = *block, tensor, &parameter](CheckpointReader& seed, const BoxInterval& piece, DType dtype,
                                                        std::byte* to) -> Status {
                     RETURN_IF_ERROR(seed.ReadElements(tensor->name, StateRole::Parameter,
                                                       InTensor(block, tensor->shape, parameter, piece), dtype, to));
                     seed.AddToSum(parameter, piece, dtype, to);
                     return Success{};
                   });
}

}  // namespace shardc::host
