#include "compiler/checkpoint/element_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "compiler/checkpoint/widen.h"

namespace shardc {

/// Returns the sum over `count` elements, of which the first has the index `begin`.
static auto SumFrom(uint64_t begin, const float* elements, int64_t count) -> uint64_t {
  constexpr uint64_t Step = 0x9e3779b97f4a7c15;
  constexpr uint64_t Factor = 0xbf58476d1ce4e5b9;
  uint64_t sum = 0;
  uint64_t key = (begin + 1) * Step;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t mixed = (std::bit_cast<uint32_t>(elements[i]) ^ key) * Factor;
    sum += mixed ^ (mixed >> 29);
    key += Step;
  }
  return sum;
}

auto SumOfElements(const BoxInterval& elements, DType dtype, const std::byte* bytes) -> uint64_t {
  constexpr int64_t BlockSize = 4096;
  std::array<float, BlockSize> widened;
  uint64_t sum = 0;
  ForEachMatrixInterval(elements, [&](int64_t begin, int64_t end, int64_t offset) {
    for (int64_t at = begin; at < end; at += BlockSize) {
      const int64_t count = std::min(BlockSize, end - at);
      Widen(bytes + (offset + at - begin) * SizeOf(dtype), dtype, count, widened.data());
      sum += SumFrom(static_cast<uint64_t>(at), widened.data(), count);
    }
  });
  return sum;
}

auto SumText(uint64_t sum) -> std::string { return fmt::format("{:016x}", sum); }

auto SumFromText(std::string_view text) -> ErrorOr<uint64_t> {
  uint64_t sum = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), sum, 16);
  FAIL_IF(error != std::errc() || end != text.data() + text.size() || SumText(sum) != text, ExitCode::Checkpoint,
          "the sum \"{}\" is not 16 hex digits", text);
  return sum;
}

}  // namespace shardc
