#include "runtime/checkpoint/mapped_tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "compiler/base/bfloat16.h"
#include "compiler/base/check.h"

namespace shardc {

MappedTensor::MappedTensor(int64_t num_elements, DType dtype, std::vector<Part> parts)
    : num_elements_(num_elements), dtype_(dtype), parts_(std::move(parts)) {
  CHECK(!parts_.empty() && (dtype == DType::F32 || dtype == DType::BF16), "{} parts of {}", parts_.size(),
        ToText(dtype));
  std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
    return std::pair(a.range.columns.begin, a.range.elements.begin) <
           std::pair(b.range.columns.begin, b.range.elements.begin);
  });
}

/// Boxes of a tensor tile its columns, and the parts of a box its elements: each is the last that begins no later.
auto MappedTensor::PartWith(int64_t column, int64_t row) const -> const Part& {
  const auto is_before = [&](const Part& part) {
    const Interval& columns = part.range.columns;
    return column >= columns.end ||
           (column >= columns.begin && row * columns.size() + column - columns.begin >= part.range.elements.begin);
  };
  return *(std::partition_point(parts_.begin(), parts_.end(), is_before) - 1);
}

/// Widens `count` elements.
static auto Widen(const std::byte* from, DType dtype, int64_t count, float* out) -> void {
  if (dtype == DType::F32) {
    std::memcpy(out, from, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    BFloat16 element{};
    std::memcpy(&element, from + i * static_cast<int64_t>(sizeof element), sizeof element);
    out[i] = Load(element);
  }
}

auto MappedTensor::Read(int64_t begin, int64_t count, float* out) const -> void {
  CHECK(begin >= 0 && count <= num_elements_ - begin, "elements {} to {} of {}", begin, begin + count, num_elements_);
  const int64_t row_size = parts_.front().range.row;
  for (int64_t at = begin; at < begin + count;) {
    const int64_t row = at / row_size;
    const int64_t column = at % row_size;
    const auto& [range, data] = PartWith(column, row);
    const int64_t in_box = row * range.columns.size() + column - range.columns.begin;
    // To the end of the part, and of the row where that goes on in another box.
    const int64_t in_part = range.elements.end - in_box;
    const int64_t run =
        std::min({begin + count - at, in_part, range.is_whole_rows() ? in_part : range.columns.end - column});
    Widen(data + (in_box - range.elements.begin) * SizeOf(dtype_), dtype_, run, out + (at - begin));
    at += run;
  }
}

}  // namespace shardc
