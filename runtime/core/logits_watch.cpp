#include "runtime/core/logits_watch.h"

#include <algorithm>

#include "compiler/ops/loss.h"

namespace shardc {

auto LogitsPart::Row(int64_t position, int64_t sample) -> ErrorOr<const std::byte*> {
  const int64_t row = (position * batch() + sample) * width();
  return memory_.Read(view_.At<std::byte>(moment_) + row * SizeOf(dtype()), columns * SizeOf(dtype()));
}

LogitsWatch::LogitsWatch(RankBinder* binder) : binder_(*binder) {
  const Plan& plan = binder_.plan();
  const std::vector<Op>& ops = plan.section(SectionKind::Eval).ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (const auto load = SampleLoadOf(ops[i]); load && load->tokens.valid()) {
      first_sample_ = load->sample;
    }
    if (const auto loss = LossOf(ops[i]); loss && (!loss->head.valid() || plan.heads[loss->head].is_own)) {
      chunks_.emplace(i, std::ssize(chunks_));
    }
  }
}

auto LogitsWatch::Wrap(SectionKind section, size_t index, Kernel kernel) -> Kernel {
  const auto chunk = chunks_.find(index);
  if (section != SectionKind::Eval || chunk == chunks_.end()) {
    return kernel;
  }
  const Plan& plan = binder_.plan();
  const Op& op = plan.section(section).ops[index];
  const View view = binder_.ViewOf(LossOf(op)->logits);
  const Coordinates coordinates = plan.mesh.CoordinatesOf(binder_.rank());
  const auto* axes = AttributeOf<AxisSet>(op.body, "vocab_axes");
  const int64_t columns = view.shape[2];
  const int64_t first_column = axes == nullptr ? 0 : plan.mesh.IndexIn(*axes, binder_.rank()) * columns;
  return [=, this, memory = HostMemory(binder_), kernel = std::move(kernel)](const Moment& moment) mutable -> Status {
    LogitsPart part(view, moment, &memory);
    part.first_sample = first_sample_->Evaluate({coordinates, moment.repeat, moment.step});
    part.first_position = chunk->second * view.shape[0];
    part.first_column = first_column;
    part.columns = std::clamp(plan.data.vocab - first_column, int64_t{0}, columns);
    RETURN_IF_ERROR(see(part));
    return kernel(moment);
  };
}

}  // namespace shardc
