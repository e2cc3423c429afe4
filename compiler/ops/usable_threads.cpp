// What the kernels of runtime/kernels/cpu cut their work into, op by op. An op that is counted too high costs memory in
// explain, one too low costs threads: neither changes a result.
#include "compiler/ops/usable_threads.h"

#include <algorithm>

#include "compiler/ops/attention_scratch.h"
#include "compiler/ops/gemm_cut.h"
#include "compiler/ops/op_support.h"

namespace shardc {

namespace {

/// Parts of the work of one op.
struct Parts {
  int64_t all = 1;
  int64_t products = 1;
};

/// Of loops over elements, whatever their rows.
auto OfElements(int64_t elements) -> Parts { return {.all = elements / ElementsPerThread}; }

/// Of loops over whole rows.
auto OfRows(const Plan& plan, ValueId value) -> Parts {
  const Matrix rows = AsMatrix(plan, value);
  return {.all = rows.rows / RowsPerThread(rows.columns)};
}

/// Of loops over what a rank owns of each parameter of a vector.
auto OfSegments(const Plan& plan, SubVectorId id) -> Parts {
  const SubVector& sub_vector = plan.sub_vectors[id];
  int64_t most = 0;
  for (const Segment& segment : sub_vector.segments) {
    most = std::max(most, segment.end - segment.begin);
  }
  return OfElements(std::min(most, OwnedSlice(sub_vector, plan.mesh, 0).size()));
}

auto OfProducts(int64_t parts) -> Parts { return {.all = parts, .products = parts}; }

template <class Op>
auto OfAttention(const Plan& plan, const Op& op) -> Parts {
  return OfProducts(AttentionSizesOf(plan, op.q, op.k, op.head_dim).slots(plan.run.threads));
}

auto PartsOf(const Plan& plan, const op::Matmul& op) -> Parts {
  const GemmProblem problem = GemmProblemOf(op, plan);
  // Without block products of f32 the library multiplies, range by range.
  const bool in_ranges = plan.device == Device::CpuPortable && problem.operands == DType::F32;
  return OfProducts(in_ranges ? NumGemmRanges(problem) : GemmSlots(problem, plan.run.threads));
}
auto PartsOf(const Plan& plan, const op::Attention& op) -> Parts { return OfAttention(plan, op); }
auto PartsOf(const Plan& plan, const op::AttentionBackward& op) -> Parts { return OfAttention(plan, op); }
auto PartsOf(const Plan& plan, const op::SumSquares& op) -> Parts { return OfSegments(plan, op.sub_vector); }
auto PartsOf(const Plan& plan, const op::Adamw& op) -> Parts { return OfSegments(plan, op.sub_vector); }
auto PartsOf(const Plan& plan, const op::CheckFinite& op) -> Parts { return OfSegments(plan, op.sub_vector); }
auto PartsOf(const Plan& plan, const op::Embedding& op) -> Parts { return OfRows(plan, op.y); }
auto PartsOf(const Plan& plan, const op::EmbeddingBackward& op) -> Parts {
  const Matrix dy = AsMatrix(plan, op.dy);
  return {.all = dy.columns / std::max(LeastColumns, RowsPerThread(dy.rows))};
}
auto PartsOf(const Plan& plan, const op::RmsNorm& op) -> Parts { return OfRows(plan, op.x); }
auto PartsOf(const Plan& plan, const op::RmsNormBackward& op) -> Parts {
  const Matrix x = AsMatrix(plan, op.x);
  return {.all =
              std::max(x.rows / RowsPerThread(x.columns), x.columns / std::max(LeastColumns, RowsPerThread(x.rows)))};
}
auto PartsOf(const Plan& plan, const op::Rope& op) -> Parts {
  // A position's rows, of all sequences, are one piece.
  const Dims& shape = ShapeOf(plan, op.x);
  return {.all = shape[0] / RowsPerThread(ElementsOf(plan, op.x) / std::max<int64_t>(shape[0], 1))};
}
auto PartsOf(const Plan& plan, const op::RopeTable& op) -> Parts {
  const Dims& shape = ShapeOf(plan, op.table);
  return {.all = shape[0] / SinesPerThread(shape[2])};
}
auto PartsOf(const Plan& plan, const op::Swiglu& op) -> Parts { return OfElements(ElementsOf(plan, op.y)); }
auto PartsOf(const Plan& plan, const op::SwigluBackward& op) -> Parts { return OfElements(ElementsOf(plan, op.dy)); }
auto PartsOf(const Plan& plan, const op::Add& op) -> Parts { return OfElements(ElementsOf(plan, op.y)); }
auto PartsOf(const Plan& plan, const op::ResidualAdd& op) -> Parts { return OfElements(ElementsOf(plan, op.y)); }
auto PartsOf(const Plan& plan, const op::Cast& op) -> Parts { return OfElements(ElementsOf(plan, op.y)); }
auto PartsOf(const Plan& plan, const op::Fill& op) -> Parts { return OfElements(ElementsOf(plan, op.out)); }
auto PartsOf(const Plan& plan, const op::Copy& op) -> Parts {
  return OfElements(BytesOf(plan, op.y).value / SizeOf(DType::F32));
}
auto PartsOf(const Plan& plan, const op::CrossEntropy& op) -> Parts { return OfRows(plan, op.logits); }
auto PartsOf(const Plan& plan, const op::LogSumExp& op) -> Parts { return OfRows(plan, op.logits); }
auto PartsOf(const Plan& plan, const op::CrossEntropyBackward& op) -> Parts { return OfRows(plan, op.logits); }

/// Of ops that one thread does: communication, files, numbers.
template <class Body>
auto PartsOf(const Plan&, const Body&) -> Parts {
  return {};
}

}  // namespace

auto UsableThreadsOf(const Plan& plan, int64_t threads) -> UsableThreads {
  UsableThreads usable;
  for (const Section& section : plan.sections) {
    for (const Op& op : section.ops) {
      const Parts parts = VisitBody(op.body, [&](const auto& body) { return PartsOf(plan, body); });
      usable.all = std::max(usable.all, parts.all);
      usable.products = std::max(usable.products, parts.products);
    }
  }
  return {.all = std::min(usable.all, threads), .products = std::min(usable.products, threads)};
}

}  // namespace shardc
