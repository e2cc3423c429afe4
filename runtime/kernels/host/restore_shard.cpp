// restore_shard: the owned elements of one state vector out of the chosen checkpoint; padding becomes zero. An
// evaluation leaves moments alone: nothing reads them there, and the checkpoint may have none.
#include <algorithm>

#include "compiler/plan/local_parameter.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/kernels/host/host_memory.h"

namespace shardc::host {

auto Bind(const op::RestoreShard& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  const View shard = binder.ViewOf(op.shard);
  // (The reader is asked for only now: a plan may be bound before a checkpoint is chosen.)
  return [op, shard, segments = OwnedSegments(plan, op.sub_vector, binder.rank()), &plan, &binder,
          memory = HostMemory(binder)](const Moment& moment) mutable -> Status {
    if (!binder.reader().Gives(op.role)) {
      return Success{};
    }
    const int64_t element = SizeOf(shard.dtype);
    return ForEachPiece(shard.num_elements() * element, [&](int64_t begin, int64_t bytes) {
      const Interval piece{begin / element, (begin + bytes) / element};
      return memory.Write(shard.At<std::byte>(moment) + begin, bytes, [&](std::byte* out) -> Status {
        std::byte* end = out;
        for (const OwnedSegment& segment : segments) {
          const Interval part = Intersect(segment.in_slice, piece);
          if (part.empty()) {
            continue;
          }
          BoxInterval elements = segment.elements;
          elements.elements.begin += part.begin - segment.in_slice.begin;
          elements.elements.end = elements.elements.begin + part.size();
          std::byte* const begin = out + (part.begin - piece.begin) * element;
          std::fill(end, begin, std::byte{0});
          const Parameter& parameter = plan.parameters[segment.parameter];
          RETURN_IF_ERROR(binder.reader().ReadElements(parameter.name, op.role, elements, shard.dtype, begin));
          if (op.role == StateRole::Parameter) {
            binder.reader().AddToSum(parameter, elements, shard.dtype, begin);
          }
          end = begin + part.size() * element;
        }
        std::fill(end, out + bytes, std::byte{0});
        return Success{};
      });
    });
  };
}

}  // namespace shardc::host
