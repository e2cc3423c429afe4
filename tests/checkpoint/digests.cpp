// XXH3-128 on this machine's path, vectors or none, against what `xxhsum -H2` prints.
#include "compiler/checkpoint/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace shardc {
namespace {

struct Known {
  int64_t bytes;
  std::string digest;
};

/// Sizes at which the algorithm changes, and that of a block.
const std::vector<Known> KnownDigests{
    {0, "99aa06d3014798d86001c324468d497f"},       {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
    {16, "1f875b82c9128a626f3d2a156f5a39dc"},      {128, "f93fa335257613ae4962f24beaaf8aad"},
    {129, "e1744181c659dd53c127875d6aa79f41"},     {240, "6166e43a373c76ba47c4871bcda58f49"},
    {241, "76217135944bb7585f2350ac407e387b"},     {1024, "b9bbd62b6b18de0c4d7058d29ad3b4da"},
    {100'000, "d35421d235e5d1714aebf23d41301cd1"}, {262'144, "b0d4cbffd9e89525ef0cc5ceef2537be"},
};

auto BytesOf(int64_t count) -> std::vector<unsigned char> {
  std::vector<unsigned char> bytes;
  for (int64_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<unsigned char>(i * i + (i >> 8)));
  }
  return bytes;
}

TEST(Digests, AreThoseOfXxhsum) {
  for (const Known& known : KnownDigests) {
    const auto bytes = BytesOf(known.bytes);
    EXPECT_EQ(ToText(DigestBytesOf(bytes.data(), known.bytes)), known.digest) << known.bytes;
    EXPECT_EQ(DigestOf(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())), known.digest);
    for (const int64_t chunk : {int64_t{1}, int64_t{63}, int64_t{300}, int64_t{65'536}}) {
      Digest running;
      for (int64_t at = 0; at < known.bytes; at += chunk) {
        running.Update(bytes.data() + at, std::min(chunk, known.bytes - at));
      }
      EXPECT_EQ(running.Text(), known.digest) << known.bytes << " by " << chunk;
      EXPECT_EQ(ToText(running.Bytes()), known.digest);
    }
  }
}

}  // namespace
}  // namespace shardc
