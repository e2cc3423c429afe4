#include "compiler/checkpoint/digest.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "compiler/base/processor.h"
#include "compiler/checkpoint/digest_avx2.h"

namespace shardc {

// (Aligned to 64 bytes by its type.)
struct Digest::State {
  XXH3_state_t xxh;
};

static auto BytesOf(const XXH128_hash_t& hash) -> DigestBytes {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  return std::bit_cast<DigestBytes>(canonical);
}

Digest::Digest() : state_(std::make_unique<State>()) { Reset(); }
Digest::~Digest() = default;

auto Digest::Update(const void* data, int64_t bytes) -> void {
  if (HasAvx2()) {
    UpdateByAvx2(&state_->xxh, data, static_cast<size_t>(bytes));
  } else {
    XXH3_128bits_update(&state_->xxh, data, static_cast<size_t>(bytes));
  }
}

auto Digest::Halves() const -> std::pair<uint64_t, uint64_t> {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return {hash.low64, hash.high64};
}

auto Digest::Text() const -> std::string {
  const auto [low, high] = Halves();
  return DigestText(low, high);
}

auto Digest::Bytes() const -> DigestBytes { return BytesOf(XXH3_128bits_digest(&state_->xxh)); }

auto Digest::Reset() -> void { XXH3_128bits_reset(&state_->xxh); }

auto ToText(const DigestBytes& digest) -> std::string {
  std::string text;
  for (const std::byte byte : digest) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

auto DigestBytesOf(const void* data, int64_t bytes) -> DigestBytes {
  if (HasAvx2()) {
    DigestBytes digest;
    DigestByAvx2(data, static_cast<size_t>(bytes), digest.data());
    return digest;
  }
  return BytesOf(XXH3_128bits(data, static_cast<size_t>(bytes)));
}

auto DigestText(uint64_t low, uint64_t high) -> std::string { return fmt::format("{:016x}{:016x}", high, low); }

auto DigestOf(std::string_view text) -> std::string {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return DigestText(hash.low64, hash.high64);
}

auto DigestOf(const Descriptor& file, int64_t bytes, const std::function<void(int64_t)>& after_read)
    -> ErrorOr<std::string> {
  constexpr int64_t ChunkBytes = int64_t{1} << 20;
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(ChunkBytes, bytes)));
  Digest digest;
  for (int64_t offset = 0; offset < bytes; offset += ChunkBytes) {
    const int64_t size = std::min(ChunkBytes, bytes - offset);
    RETURN_IF_ERROR(ReadAll(file, chunk.data(), size, offset));
    digest.Update(chunk.data(), size);
    if (after_read) {
      after_read(size);
    }
  }
  return digest.Text();
}

auto IsDigest(std::string_view text) -> bool {
  return text.size() == DigestDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace shardc
