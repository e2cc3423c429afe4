// What the kernels of runtime/kernels/cpu cut their work into, as the facts of each op say. An op that is counted too
// high costs memory in explain, one too low costs threads: neither changes a result.
#include "compiler/ops/cpu/usable_threads.h"

#include "compiler/ops/op_support.h"

namespace shardc {

namespace {

/// Of loops over elements, whatever their rows.
auto OfElements(int64_t elements) -> WorkParts { return {.all = elements / ElementsPerThread}; }

/// Of loops over whole rows.
auto OfRows(const Matrix& matrix) -> WorkParts { return {.all = matrix.rows / RowsPerThread(matrix.columns)}; }

/// Of loops over columns, each of which takes all rows.
auto OfColumns(const Matrix& matrix) -> WorkParts {
  return {.all = matrix.columns / std::max(LeastColumns, RowsPerThread(matrix.rows))};
}

/// Of loops over what a rank owns of each parameter of a vector.
auto OfOwnedSegments(const Plan& plan, SubVectorId id) -> WorkParts {
  const SubVector& sub_vector = plan.sub_vectors[id];
  int64_t most = 0;
  for (const Segment& segment : sub_vector.segments) {
    most = std::max(most, segment.end - segment.begin);
  }
  return OfElements(std::min(most, OwnedSlice(sub_vector, plan.mesh, 0).size()));
}

auto PartsOf(const Plan& plan, const OpBody& body) -> WorkParts {
  const ThreadFact& fact = FactsOf(body).threads;
  const auto matrix = [&] { return AsMatrix(plan, ValueIn(body, fact.field)); };
  switch (fact.cut) {
    case WorkCut::None: return {};
    case WorkCut::Elements: return OfElements(ElementsOf(plan, ValueIn(body, fact.field)));
    case WorkCut::Rows: return OfRows(matrix());
    case WorkCut::Columns: return OfColumns(matrix());
    case WorkCut::RowsThenColumns: return {.all = std::max(OfRows(matrix()).all, OfColumns(matrix()).all)};
    case WorkCut::OwnedSegments: return OfOwnedSegments(plan, *AttributeOf<SubVectorId>(body, "sub_vector"));
    case WorkCut::Formula:
      // Products and attention, which no thread of a host does for a device of another family.
      return FactsOf(plan.device).family == DeviceFamily::Cpu ? fact.formula(body, plan) : WorkParts{};
  }
  CHECK(false, "cut {}", static_cast<int>(fact.cut));
}

}  // namespace

auto UsableThreadsOf(const Plan& plan, int64_t threads) -> UsableThreads {
  UsableThreads usable;
  for (const Section& section : plan.sections) {
    for (const Op& op : section.ops) {
      const WorkParts parts = PartsOf(plan, op.body);
      usable.all = std::max(usable.all, parts.all);
      usable.products = std::max(usable.products, parts.products);
    }
  }
  return {.all = std::min(usable.all, threads), .products = std::min(usable.products, threads)};
}

}  // namespace shardc
