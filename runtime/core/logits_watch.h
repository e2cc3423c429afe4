// The logits of an evaluation, before its loss is taken: what `shardc logits` writes and `shardc sample` draws from.
#pragma once

#include <functional>
#include <map>

#include "runtime/core/rank_binder.h"
#include "runtime/kernels/host/host_memory.h"

namespace shardc {

/// The logits of a chunk of positions, for a microbatch of samples, as far as this rank has them.
class LogitsPart {
 public:
  LogitsPart(const View& view, const Moment& moment, HostMemory* memory)
      : view_(view), moment_(moment), memory_(*memory) {}

  /// Number of the sample in the eval split.
  int64_t first_sample = 0;
  /// Number of the position in its sample.
  int64_t first_position = 0;
  /// Number of the id in the vocabulary.
  int64_t first_column = 0;
  /// Number of ids, without those past the vocabulary's end.
  int64_t columns = 0;

  auto positions() const -> int64_t { return view_.shape[0]; }
  auto batch() const -> int64_t { return view_.shape[1]; }
  /// Returns the columns that each rank has, past the vocabulary's end too.
  auto width() const -> int64_t { return view_.shape[2]; }
  auto dtype() const -> DType { return view_.dtype; }
  /// Returns the logits of one position, which stay as they are until the next call.
  auto Row(int64_t position, int64_t sample) -> ErrorOr<const std::byte*>;

 private:
  const View& view_;
  const Moment& moment_;
  HostMemory& memory_;
};

class LogitsWatch {
 public:
  /// Finds the losses of the evaluation. `binder` outlives the watch.
  explicit LogitsWatch(RankBinder* binder);

  /// Puts a look at the logits round the kernel of a loss of the evaluation. The watch outlives the kernel.
  auto Wrap(SectionKind section, size_t index, Kernel kernel) -> Kernel;
  /// Called for each part, while the section runs.
  std::function<auto(LogitsPart& part)->Status> see;

 private:
  RankBinder& binder_;
  /// Number of the sample that a microbatch begins with.
  const RankExpr* first_sample_ = nullptr;
  /// By the index of its op: the number of a chunk of the loss of the model's own head.
  std::map<size_t, int64_t> chunks_;
};

}  // namespace shardc
