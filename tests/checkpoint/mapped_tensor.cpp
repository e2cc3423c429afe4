// Any interval of a tensor, out of pieces as different meshes leave them.
#include "runtime/checkpoint/mapped_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "compiler/base/bfloat16.h"

namespace shardc {
namespace {

constexpr int64_t Rows = 7;
constexpr int64_t Columns = 10;

/// Boxes of columns that end at `columns`, each in pieces that end at these elements of it.
struct Cut {
  std::vector<int64_t> columns;
  std::vector<std::vector<int64_t>> elements;
};

const std::vector<Cut> Cuts{
    // One rank; three, by whole rows; two along the columns; and both.
    {{}, {{70}}},
    {{}, {{23, 24, 70}}},
    {{5, 10}, {{35}, {35}}},
    {{4, 6, 10}, {{1, 28}, {13, 14}, {3, 11, 28}}},
};

class Pieces {
 public:
  Pieces(const Cut& cut, DType dtype) : dtype_(dtype) {
    int64_t column = 0;
    for (size_t box = 0; box < cut.elements.size(); ++box) {
      const Interval columns = cut.columns.empty() ? Interval{0, Columns} : Interval{column, cut.columns[box]};
      column = columns.end;
      int64_t begin = 0;
      for (const int64_t end : cut.elements[box]) {
        Add(cut.columns.empty() ? BoxInterval::Of({begin, end})
                                : BoxInterval{.elements = {begin, end}, .row = Columns, .columns = columns},
            columns);
        begin = end;
      }
    }
    // The reader does not rely on an order.
    std::shuffle(pieces_.begin(), pieces_.end(), std::mt19937(1));
  }

  auto Tensor() const -> MappedTensor { return {Rows * Columns, dtype_, pieces_}; }

 private:
  /// Element i of the tensor is i - 30; all of these are whole in bf16.
  auto Add(const BoxInterval& interval, const Interval& columns) -> void {
    // At an odd byte, as tensors in files may lie.
    auto& bytes = bytes_.emplace_back(1);
    for (int64_t i = interval.elements.begin; i < interval.elements.end; ++i) {
      const auto value = static_cast<float>(i / columns.size() * Columns + columns.begin + i % columns.size()) - 30;
      BFloat16 half{};
      Store(half, value);
      const auto* const from = dtype_ == DType::BF16 ? reinterpret_cast<const std::byte*>(&half)
                                                     : reinterpret_cast<const std::byte*>(&value);
      bytes.insert(bytes.end(), from, from + SizeOf(dtype_));
    }
    pieces_.push_back({interval, bytes.data() + 1});
  }

  DType dtype_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<MappedTensor::MappedPiece> pieces_;
};

TEST(MappedTensor, GivesAnyIntervalOfAnyPieces) {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (size_t c = 0; c < Cuts.size(); ++c) {
      const Pieces pieces(Cuts[c], dtype);
      const MappedTensor tensor = pieces.Tensor();
      ASSERT_EQ(tensor.num_elements(), Rows * Columns);
      for (int64_t begin = 0; begin < Rows * Columns; ++begin) {
        for (int64_t end = begin; end <= Rows * Columns; ++end) {
          std::vector<float> expected(static_cast<size_t>(end - begin));
          std::iota(expected.begin(), expected.end(), static_cast<float>(begin) - 30);
          std::vector<float> read(expected.size());
          tensor.Read(begin, end - begin, read.data());
          ASSERT_EQ(read, expected) << ToText(dtype) << ", cut " << c << ", from " << begin << " to " << end;
        }
      }
    }
  }
}

TEST(MappedTensor, TakesNumbersThatAreNoElements) {
  const Pieces pieces(Cuts[0], DType::F32);
  const MappedTensor tensor = pieces.Tensor();
  EXPECT_EQ(tensor.ElementAt(0), 0);
  EXPECT_EQ(tensor.ElementAt(69), 69);
  EXPECT_EQ(tensor.ElementAt(70), 69);
  EXPECT_EQ(tensor.ElementAt(-1), 0);
  EXPECT_EQ(tensor.ElementAt(1e300), 69);
  EXPECT_EQ(tensor.ElementAt(std::numeric_limits<double>::infinity()), 69);
  EXPECT_EQ(tensor.ElementAt(std::numeric_limits<double>::quiet_NaN()), 0);
}

}  // namespace
}  // namespace shardc
