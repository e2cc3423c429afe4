#include "runtime/checkpoint/mapped_tensor.h"

#include <algorithm>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/checkpoint/widen.h"

namespace shardc {

MappedTensor::MappedTensor(int64_t num_elements, DType dtype, std::vector<MappedPiece> pieces)
    : num_elements_(num_elements), dtype_(dtype), pieces_(std::move(pieces)) {
  CHECK(!pieces_.empty() && IsTypeOfSeed(dtype), "{} pieces of {}", pieces_.size(), ToText(dtype));
  std::sort(pieces_.begin(), pieces_.end(), [](const MappedPiece& a, const MappedPiece& b) {
    return std::pair(a.interval.columns.begin, a.interval.elements.begin) <
           std::pair(b.interval.columns.begin, b.interval.elements.begin);
  });
}

/// Boxes of a tensor tile its columns, and the pieces of a box its elements: each is the last that begins no later.
auto MappedTensor::PieceWith(int64_t column, int64_t row) const -> const MappedPiece& {
  const auto is_before = [&](const MappedPiece& piece) {
    const Interval& columns = piece.interval.columns;
    return column >= columns.end ||
           (column >= columns.begin && row * columns.size() + column - columns.begin >= piece.interval.elements.begin);
  };
  return *(std::partition_point(pieces_.begin(), pieces_.end(), is_before) - 1);
}

auto MappedTensor::Read(int64_t begin, int64_t count, float* out) const -> void {
  CHECK(begin >= 0 && count <= num_elements_ - begin, "elements {} to {} of {}", begin, begin + count, num_elements_);
  const int64_t row_size = pieces_.front().interval.row;
  for (int64_t at = begin; at < begin + count;) {
    const int64_t row = at / row_size;
    const int64_t column = at % row_size;
    const auto& [interval, data, file] = PieceWith(column, row);
    const int64_t in_box = row * interval.columns.size() + column - interval.columns.begin;
    // To the end of the piece, and of the box's row if the matrix's row continues in another box.
    const int64_t in_piece = interval.elements.end - in_box;
    const int64_t length =
        std::min({begin + count - at, in_piece, interval.is_whole_rows() ? in_piece : interval.columns.end - column});
    const std::byte* const first = data + (in_box - interval.elements.begin) * SizeOf(dtype_);
    if (file != nullptr) {
      file->CheckBytes(first, length * SizeOf(dtype_));
    }
    Widen(first, dtype_, length, out + (at - begin));
    at += length;
  }
}

}  // namespace shardc
