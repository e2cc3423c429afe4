#include "compiler/base/text/long_words.h"

#include <algorithm>

namespace shardc {

/// Returns the number of bytes up to `most` that end with a whole character of UTF-8.
static auto WholeCharacters(std::string_view word, size_t most) -> size_t {
  while (most > 0 && (static_cast<unsigned char>(word[most]) & 0xC0U) == 0x80U) {
    --most;
  }
  return most;
}

static auto Cut(std::string_view word) -> std::string {
  constexpr size_t Longest = 1000;
  constexpr size_t FirstBytes = 200;
  constexpr size_t LastBytes = 40;
  if (word.size() <= Longest) {
    return std::string(word);
  }
  const size_t end = WholeCharacters(word, FirstBytes);
  const size_t rest = WholeCharacters(word, word.size() - LastBytes);
  return std::string(word.substr(0, end)) + "..." + std::string(word.substr(rest));
}

auto CutLongWords(std::string_view text) -> std::string {
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \n\t"), text.size());
    result += Cut(text.substr(0, end));
    const size_t next = std::min(end + 1, text.size());
    result += text.substr(end, next - end);
    text.remove_prefix(next);
  }
  return result;
}

}  // namespace shardc
