// Digests that GPUs take, emulated: those of a plain loop, and other ones after any change.
#include "runtime/kernels/cuda/digest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace shardc {
namespace {

auto Drawn(int64_t bytes) -> std::vector<std::byte> {
  std::mt19937_64 random(3);
  std::vector<std::byte> drawn(static_cast<size_t>(bytes));
  for (std::byte& byte : drawn) {
    byte = static_cast<std::byte>(random());
  }
  return drawn;
}

auto DigestOf(const std::byte* first, int64_t count, int64_t element_bytes) -> PartDigest {
  uint64_t words[2] = {};
  EXPECT_TRUE(cuda::AddDigest(nullptr, first, count, element_bytes, words).ok());
  return {words[0], words[1]};
}

auto Mixed(uint64_t bits) -> uint64_t {
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBULL;
  return bits ^ (bits >> 31U);
}

auto DigestByLoop(const std::byte* first, int64_t count, int64_t element_bytes) -> PartDigest {
  PartDigest digest{};
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, first + i * element_bytes, static_cast<size_t>(element_bytes));
    bits += static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15ULL;
    digest.first += Mixed(bits);
    digest.second += Mixed(bits ^ 0xD1B54A32D192ED03ULL);
  }
  return digest;
}

TEST(Digests, AreThoseOfALoop) {
  const std::vector<std::byte> bytes = Drawn(4 * 700'001);
  for (const int64_t element_bytes : {2, 4}) {
    // The last has more elements than all threads.
    for (const int64_t count : {0, 1, 255, 4096, 700'000}) {
      EXPECT_EQ(DigestOf(bytes.data(), count, element_bytes), DigestByLoop(bytes.data(), count, element_bytes))
          << count;
    }
    EXPECT_EQ(DigestOf(bytes.data() + element_bytes, 1000, element_bytes),
              DigestByLoop(bytes.data() + element_bytes, 1000, element_bytes));
  }
}

TEST(Digests, DifferAfterAnyChange) {
  constexpr int64_t Count = 96;
  for (const int64_t element_bytes : {2, 4}) {
    std::vector<std::byte> bytes = Drawn(Count * element_bytes);
    const PartDigest before = DigestOf(bytes.data(), Count, element_bytes);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << bit % 8;
      const PartDigest digest = DigestOf(bytes.data(), Count, element_bytes);
      EXPECT_TRUE(digest.first != before.first && digest.second != before.second) << bit;
      bytes[bit / 8] ^= std::byte{1} << bit % 8;
    }
    // Two elements that change places.
    std::swap_ranges(bytes.begin(), bytes.begin() + element_bytes, bytes.begin() + 5 * element_bytes);
    const PartDigest swapped = DigestOf(bytes.data(), Count, element_bytes);
    EXPECT_TRUE(swapped.first != before.first && swapped.second != before.second);
  }
}

}  // namespace
}  // namespace shardc
