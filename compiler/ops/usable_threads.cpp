// What the kernels of runtime/kernels/cpu cut their work into, as the facts of each op say, and the formulas of ops
// that have one of their own. An op that is counted too high costs memory in explain, one too low costs threads:
// neither changes a result.
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
auto OfRows(const Matrix& matrix) -> Parts { return {.all = matrix.rows / RowsPerThread(matrix.columns)}; }

/// Of loops over columns, each of which takes all rows.
auto OfColumns(const Matrix& matrix) -> Parts {
  return {.all = matrix.columns / std::max(LeastColumns, RowsPerThread(matrix.rows))};
}

/// Of loops over what a rank owns of each parameter of a vector.
auto OfOwnedSegments(const Plan& plan, SubVectorId id) -> Parts {
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

auto Formula(const Plan& plan, const op::Matmul& op) -> Parts {
  const GemmProblem problem = GemmProblemOf(op, plan);
  // Without block products of f32 the library multiplies, range by range.
  const bool in_ranges = FactsOf(plan.device).products_of_f32_by_library && problem.operands == DType::F32;
  return OfProducts(in_ranges ? NumGemmRanges(problem) : GemmSlots(problem, plan.run.threads));
}
auto Formula(const Plan& plan, const op::Attention& op) -> Parts { return OfAttention(plan, op); }
auto Formula(const Plan& plan, const op::AttentionBackward& op) -> Parts { return OfAttention(plan, op); }
auto Formula(const Plan& plan, const op::Rope& op) -> Parts {
  // A position's rows, of all sequences, are one piece.
  const Dims& shape = ShapeOf(plan, op.x);
  return {.all = shape[0] / RowsPerThread(ElementsOf(plan, op.x) / std::max<int64_t>(shape[0], 1))};
}
auto Formula(const Plan& plan, const op::RopeTable& op) -> Parts {
  const Dims& shape = ShapeOf(plan, op.table);
  return {.all = shape[0] / SinesPerThread(shape[2])};
}
auto Formula(const Plan& plan, const op::Copy& op) -> Parts {
  return OfElements(BytesOf(plan, op.y).value / SizeOf(DType::F32));
}
template <class Body>
auto Formula(const Plan&, const Body&) -> Parts {
  CHECK(false, "{} has no formula", Body::Mnemonic);
}

auto PartsOf(const Plan& plan, const OpBody& body) -> Parts {
  const ThreadFact& fact = FactsOf(body).threads;
  const auto matrix = [&] { return AsMatrix(plan, ValueIn(body, fact.field)); };
  switch (fact.cut) {
    case WorkCut::None: return {};
    case WorkCut::Elements: return OfElements(ElementsOf(plan, ValueIn(body, fact.field)));
    case WorkCut::Rows: return OfRows(matrix());
    case WorkCut::Columns: return OfColumns(matrix());
    case WorkCut::RowsThenColumns: return {.all = std::max(OfRows(matrix()).all, OfColumns(matrix()).all)};
    case WorkCut::OwnedSegments: return OfOwnedSegments(plan, *AttributeOf<SubVectorId>(body, "sub_vector"));
    case WorkCut::Formula: return VisitBody(body, [&](const auto& concrete) { return Formula(plan, concrete); });
  }
  CHECK(false, "cut {}", static_cast<int>(fact.cut));
}

}  // namespace

auto UsableThreadsOf(const Plan& plan, int64_t threads) -> UsableThreads {
  UsableThreads usable;
  for (const Section& section : plan.sections) {
    for (const Op& op : section.ops) {
      const Parts parts = PartsOf(plan, op.body);
      usable.all = std::max(usable.all, parts.all);
      usable.products = std::max(usable.products, parts.products);
    }
  }
  return {.all = std::min(usable.all, threads), .products = std::min(usable.products, threads)};
}

}  // namespace shardc
