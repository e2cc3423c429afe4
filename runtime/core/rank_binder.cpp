#include "runtime/core/rank_binder.h"

namespace shardc {

auto RankBinder::ViewOf(ValueId id) -> View {
  const Value& value = plan_->values[id];
  const Buffer& buffer = plan_->buffers[value.buffer];
  CHECK(buffer.offset >= 0, "buffer {} has no offset", buffer.name);
  CHECK(value.offset.step == 0, "value {} moves with the step", value.name);
  const int64_t offset =
      buffer.offset + value.offset.Evaluate({.coordinates = plan_->mesh.CoordinatesOf(rank_), .repeat = 0, .step = 0});
  return {.base = device_->Base(buffer.arena) + offset,
          .bytes_per_repeat = value.offset.repeat,
          .dtype = value.dtype,
          .shape = value.shape,
          .arena = buffer.arena,
          .arena_offset = offset};
}

}  // namespace shardc
