// The header of a token file in llm.c's .bin format: 256 little-endian int32, of which the first three are a magic
// number, a version and the number of tokens, and the others are 0. The tokens follow as uint16.
// Source: karpathy/llm.c, dev/data/data_common.py@master, write_datafile.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

namespace shardc {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

struct TokenFileHeader {
  static constexpr int64_t Bytes = 256 * 4;
  /// Bytes of each of the ids that follow.
  static constexpr int64_t IdBytes = 2;
  static constexpr int32_t Magic = 20240520;
  static constexpr int32_t Version = 1;
  /// Marks of llm.c's files for Llama 3, whose ids are uint32. They are not read.
  static constexpr int32_t Llama3Magic = 20240801;
  static constexpr int32_t Llama3Version = 7;
  static constexpr int64_t Llama3IdBytes = 4;
  /// The header counts tokens in an int32.
  static constexpr int64_t MaxTokens = std::numeric_limits<int32_t>::max();

  int32_t magic = 0;
  int32_t version = 0;
  int32_t num_tokens = 0;
};

/// The header as bytes. Requires: 0 <= num_tokens <= MaxTokens.
inline auto TokenFileHeaderBytes(int64_t num_tokens) -> std::string {
  const TokenFileHeader header{.magic = TokenFileHeader::Magic,
                               .version = TokenFileHeader::Version,
                               .num_tokens = static_cast<int32_t>(num_tokens)};
  std::string bytes(TokenFileHeader::Bytes, '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

}  // namespace shardc
