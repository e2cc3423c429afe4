#include "compiler/data/wider_ids.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace shardc {

/// Returns half of the sum of the differences between the shares that the values have at the places one, one + by, ...
/// and at the places other, other + by, ...: 0 for equal distributions, 1 if they have no value in common.
static auto DistanceBetween(const std::vector<uint8_t>& bytes, size_t by, size_t one, size_t other) -> double {
  std::array<int64_t, 256> difference{};
  const size_t count = bytes.size() / by;
  for (size_t i = 0; i < count; ++i) {
    ++difference[bytes[i * by + one]];
    --difference[bytes[i * by + other]];
  }
  int64_t sum = 0;
  for (const int64_t value : difference) {
    sum += std::abs(value);
  }
  return static_cast<double>(sum) / (2 * static_cast<double>(count));
}

/// Counts the different values at the places first, first + by, ...
static auto NumValues(const std::vector<uint8_t>& bytes, size_t by, size_t first) -> int64_t {
  std::array<bool, 256> is_there{};
  for (size_t i = first; i < bytes.size(); i += by) {
    is_there[bytes[i]] = true;
  }
  return std::ranges::count(is_there, true);
}

auto LooksWider(const std::string& path, TokenFormat format, const FilePurpose& purpose) -> std::optional<TokenFormat> {
  constexpr size_t LeastBytes = size_t{4} << 10;
  constexpr size_t MostBytes = size_t{64} << 10;
  if (format != TokenFormat::U8 && format != TokenFormat::U16) {
    return std::nullopt;
  }
  const auto file = OpenTokenFile(path, format, purpose);
  if (!file || static_cast<size_t>(file->file_bytes) < LeastBytes) {
    return std::nullopt;
  }
  std::vector<uint8_t> bytes(std::min(MostBytes, static_cast<size_t>(file->file_bytes)) / 4 * 4);
  if (!ReadAll(file->descriptor, bytes.data(), std::ssize(bytes), 0)) {
    return std::nullopt;
  }
  // Two samples of one distribution over 256 values differ by less than 8 / sqrt(n).
  const auto differ = [&](size_t by, size_t one, size_t other) {
    const double count = static_cast<double>(bytes.size() / by);
    return DistanceBetween(bytes, by, one, other) > 0.25 + 8 / std::sqrt(count);
  };
  // Ids of u32 stay below 2^20, so that their two upper bytes have few values.
  bool has_upper_bytes = true;
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    has_upper_bytes = has_upper_bytes && bytes[i + 2] < 16 && bytes[i + 3] == 0;
  }
  if (has_upper_bytes && differ(4, 0, 2)) {
    return TokenFormat::U32;
  }
  // The upper bytes of u16 have fewer values than the lower ones: a vocabulary of 50,257 has 197 of 256. Narrow ids
  // that repeat with an even period have as many at both places.
  const bool is_u16 = differ(2, 0, 1) && 10 * NumValues(bytes, 2, 1) < 9 * NumValues(bytes, 2, 0);
  return format == TokenFormat::U8 && is_u16 ? std::optional(TokenFormat::U16) : std::nullopt;
}

auto IdentityOfPath(const std::string& path) -> std::string {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? fmt::format("{}:{}", status.st_dev, status.st_ino) : path;
}

}  // namespace shardc
