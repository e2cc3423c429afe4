// initialize: the owned elements of one parameter, by its rule; the rest of the slice stays as it is. A device may do
// it in the host's place.
#include <algorithm>
#include <array>
#include <functional>

#include "compiler/base/bfloat16.h"
#include "compiler/expr/moments.h"
#include "compiler/plan/init_rule.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/device/family.h"
#include "runtime/init/initial_values.h"
#include "runtime/kernels/host/host_memory.h"
#include "runtime/kernels/host/owned_parameter.h"
#include "runtime/kernels/machine/draw_in_blocks.h"
#include "runtime/kernels/machine/operand.h"

namespace shardc::host {

/// In blocks, where what is written is not what the values are made as.
static auto Fill(InitialValues& values, Interval elements, BFloat16* out) -> Status {
  constexpr int64_t BlockSize = 4096;
  std::array<float, BlockSize> block;
  for (int64_t begin = elements.begin; begin < elements.end; begin += BlockSize) {
    const int64_t end = std::min(elements.end, begin + BlockSize);
    if (const Status filled = values.Fill({begin, end}, block.data()); !filled.ok()) {
      return filled;
    }
    for (int64_t i = 0; i < end - begin; ++i) {
      Store(out[begin - elements.begin + i], block[static_cast<size_t>(i)]);
    }
  }
  return Success{};
}

/// Binds what the plan's device does of the op. The result returns false where the host has to do it; empty if it
/// always has.
static auto BindOnDevice(const op::Initialize& op, Binder& binder) -> std::function<ErrorOr<bool>(const Moment&)> {
  const auto bind_initialize = PartsOf(FactsOf(binder.plan().device).family).bind_initialize;
  return bind_initialize == nullptr ? nullptr : bind_initialize(op, binder);
}

static auto Fill(InitialValues& values, Interval elements, float* out) -> Status { return values.Fill(elements, out); }

auto Bind(const op::Initialize& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  const Parameter& parameter = plan.parameters[op.parameter];
  const auto owned = OwnedParameter(binder, op.sub_vector, op.parameter, binder.ViewOf(op.shard));
  if (!owned) {
    return [](const Moment&) -> Status { return Success{}; };
  }
  return ForElementType(binder.ViewOf(op.shard).dtype, [&]<class T>() -> Kernel {
    return [shard = CheckedView<T>(binder, op.shard), in_slice = owned->in_slice, elements = owned->elements, &plan,
            &parameter, drawn = binder.DrawnOf(op.parameter), &loops = LoopsOf(plan), &binder,
            memory = HostMemory(binder), on_device = BindOnDevice(op, binder)](const Moment& moment) mutable -> Status {
      if (on_device) {
        const auto done = on_device(moment);
        FAIL_IF(!done, done.error().code, "{}: {}", parameter.name, done.error().message);
        if (*done) {
          return Success{};
        }
      }
      // Here and not when the plan is bound: a restart draws nothing.
      InitialValues values(plan, parameter, [&](std::string_view tensor) -> ErrorOr<const LoadedTensor*> {
        CHECK(binder.seed() != nullptr, "{} reads {}, and no seed is open", parameter.name, tensor);
        return binder.seed()->Map(tensor);
      });
      const auto distribution = InitDistribution(parameter);
      // Sums are taken of the differences from this center.
      const double center = distribution ? MomentsOf(*distribution).mean : 0;
      const auto draw = [&](const BoxInterval& piece, T* out) -> Status {
        Status drawn_all = Success{};
        ForEachMatrixInterval(piece, [&](int64_t begin, int64_t end, int64_t offset) {
          if (drawn_all.ok()) {
            drawn_all = DrawInBlocks(loops, {begin, end}, out + offset, center, drawn,
                                     [&](Interval block, T* to) { return Fill(values, block, to); });
          }
        });
        return drawn_all;
      };
      T* const first = shard.template At<T>(moment) + in_slice.begin;
      Status status =
          ForEachPiece(elements, PieceBytes / int64_t{sizeof(T)}, [&](const BoxInterval& piece, int64_t offset) {
            return memory.Write(first + offset, piece.elements.size(), [&](T* out) { return draw(piece, out); });
          });
      // Of a file that changed meanwhile, an element without a value is a consequence.
      if (binder.seed() != nullptr) {
        if (const Status read = binder.seed()->CheckMapped(); !read.ok()) {
          status = read;
        }
      }
      return status.ok() ? status
                         : Fail(status.error().code, "{} cannot begin: {}", parameter.name, status.error().message);
    };
  });
}

}  // namespace shardc::host
