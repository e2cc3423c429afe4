// XXH3-128: the digests of files, blocks and manifests. They tell damage, not forgery.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

constexpr size_t DigestDigits = 32;

/// A digest as bytes, in the order of its hex digits.
using DigestBytes = std::array<std::byte, DigestDigits / 2>;

/// A running digest.
class Digest {
 public:
  Digest();
  ~Digest();
  auto Update(const void* data, int64_t bytes) -> void;
  /// Returns the low and the high half of what has gone in so far.
  auto Halves() const -> std::pair<uint64_t, uint64_t>;
  auto Text() const -> std::string;
  auto Bytes() const -> DigestBytes;
  /// Begins again.
  auto Reset() -> void;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// 32 hex digits, the high half first.
auto DigestText(uint64_t low, uint64_t high) -> std::string;
auto ToText(const DigestBytes& digest) -> std::string;
auto DigestOf(std::string_view text) -> std::string;
auto DigestBytesOf(const void* data, int64_t bytes) -> DigestBytes;
/// Returns the digest of the first bytes of a file, and calls `after_read`, if it is set, with the number of bytes of
/// each read. Errors: they cannot be read.
auto DigestOf(const Descriptor& file, int64_t bytes, const std::function<void(int64_t)>& after_read = {})
    -> ErrorOr<std::string>;
/// Returns true for a text of the form that these two give.
auto IsDigest(std::string_view text) -> bool;

}  // namespace shardc
