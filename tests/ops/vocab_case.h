// A vocabulary that is dealt out over the ranks of the tp axis, and what each of them has of a whole matrix.
#pragma once

#include <limits>
#include <vector>

#include "compiler/base/units.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

struct VocabCase {
  int64_t tp = 1;
  int64_t vocabulary = 0;

  /// Ids that each rank has rows for, padding included.
  auto capacity() const -> int64_t { return CeilDiv(vocabulary, tp); }
  auto Has(int64_t rank, int64_t id) const -> bool {
    return id >= rank * capacity() && id < std::min(vocabulary, (rank + 1) * capacity());
  }
  /// Returns a rank's columns of a matrix of `vocabulary` columns; `padding` past the last.
  auto Columns(const std::vector<double>& matrix, int64_t rank, double padding) const -> std::vector<double> {
    std::vector<double> columns;
    for (size_t row = 0; row < matrix.size(); row += static_cast<size_t>(vocabulary)) {
      for (int64_t id = rank * capacity(); id < (rank + 1) * capacity(); ++id) {
        columns.push_back(Has(rank, id) ? matrix[row + static_cast<size_t>(id)] : padding);
      }
    }
    return columns;
  }
  /// Returns a rank's rows of a matrix of `vocabulary` rows.
  auto Rows(const std::vector<double>& matrix, int64_t rank, double padding) const -> std::vector<double> {
    const size_t hidden = matrix.size() / static_cast<size_t>(vocabulary);
    std::vector<double> rows(static_cast<size_t>(capacity()) * hidden, padding);
    for (int64_t id = rank * capacity(); Has(rank, id); ++id) {
      std::copy_n(matrix.begin() + id * static_cast<int64_t>(hidden), hidden,
                  rows.begin() + (id - rank * capacity()) * static_cast<int64_t>(hidden));
    }
    return rows;
  }
  /// Returns `targets`, those of other ranks masked.
  auto Own(std::vector<int32_t> targets, int64_t rank) const -> std::vector<int32_t> {
    for (int32_t& target : targets) {
      target = Has(rank, target) ? target : -1;
    }
    return targets;
  }
};

/// Even, padded, with a last rank that has no id, and with one that has neither it nor all of the one before.
constexpr VocabCase VocabCases[] = {{3, 96}, {2, 257}, {4, 9}, {4, 5}};
constexpr AxisSet VocabAxes = AxisSet::Of(Axis::Tp);
/// Elements that no kernel may read.
constexpr double Unread = std::numeric_limits<double>::quiet_NaN();

/// The fixture of one rank of a case.
class VocabFixture : public KernelFixture {
 public:
  VocabFixture(const Backend& backend, const VocabCase& test, int64_t rank) : KernelFixture(backend, rank) {
    mutable_plan().mesh.sizes = {1, 1, test.tp};
    mutable_plan().data.vocab = test.vocabulary;
  }
};

/// Calls body(backend, dtype, test, rank) for each backend, element type, case and rank.
template <class Body>
auto ForVocabRanks(const Body& body) -> void {
  ForElementTypes([&](const Backend& backend, DType dtype) {
    for (const VocabCase& test : VocabCases) {
      for (int64_t rank = 0; rank < test.tp; ++rank) {
        SCOPED_TRACE(fmt::format("rank {} of {}, V={}", rank, test.tp, test.vocabulary));
        body(backend, dtype, test, rank);
      }
    }
  });
}

}  // namespace shardc
