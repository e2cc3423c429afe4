#include "compiler/data/token_ids.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace shardc {

template <class T>
static auto NumberAt(const uint8_t* raw, int64_t index) -> T {
  T number;
  std::memcpy(&number, raw + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return number;
}

/// As unsigned numbers, so that negative ones lie above every vocabulary.
template <class T>
static auto Find(const uint8_t* raw, int64_t count, const VocabRange& range, int32_t* ids) -> int64_t {
  // The greatest number comes round to 0 where it says that there is no id.
  const T none = range.none;
  const auto number = [&](int64_t i) { return static_cast<T>(NumberAt<T>(raw, i) + none); };
  // The maximum is checked once for the whole range, so that the loops vectorise.
  T largest = 0;
  if (ids == nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      largest = std::max(largest, number(i));
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const T id = number(i);
      largest = std::max(largest, id);
      ids[i] = static_cast<int32_t>(id - none);
    }
  }
  const uint64_t end = static_cast<uint64_t>(range.vocab) + none;
  if (uint64_t{largest} < end) {
    return -1;
  }
  for (int64_t i = 0;; ++i) {
    if (uint64_t{number(i)} >= end) {
      return i;
    }
  }
}

/// Counts the numbers but the greatest one of the type, which means "no id".
template <class T>
static auto Count(const uint8_t* raw, int64_t count) -> int64_t {
  int64_t ids = 0;
  for (int64_t i = 0; i < count; ++i) {
    ids += NumberAt<T>(raw, i) != std::numeric_limits<T>::max() ? 1 : 0;
  }
  return ids;
}

/// Calls visit with the unsigned type that has the size of the ids.
template <class Visit>
static auto ByType(IdType type, const Visit& visit) -> int64_t {
  switch (type.bytes) {
    case 1: return visit.template operator()<uint8_t>();
    case 2: return visit.template operator()<uint16_t>();
    case 4: return visit.template operator()<uint32_t>();
    case 8: return visit.template operator()<uint64_t>();
    default: CHECK(false, "ids of {} bytes", type.bytes);
  }
}

auto WidenIds(const uint8_t* raw, int64_t count, IdType type, const VocabRange& range, int32_t* ids) -> int64_t {
  return ByType(type, [&]<class T>() { return Find<T>(raw, count, range, ids); });
}

auto FindBadId(const uint8_t* raw, int64_t count, IdType type, const VocabRange& range) -> int64_t {
  return WidenIds(raw, count, type, range, nullptr);
}

auto CountIds(const uint8_t* raw, int64_t count, IdType type, const VocabRange& range) -> int64_t {
  return range.none == 0 ? count : ByType(type, [&]<class T>() { return Count<T>(raw, count); });
}

auto CheckNoneFits(const TokenFile& file, const std::string& noun, const VocabRange& range) -> Status {
  // A signed type has -1 for it.
  if (range.none == 0 || file.type.is_signed || file.type.bytes >= 8) {
    return Success{};
  }
  const int64_t greatest = (int64_t{1} << (8 * file.type.bytes)) - 1;
  if (range.vocab <= greatest) {
    return Success{};
  }
  return Fail(ExitCode::RecipeRejected,
              "{} file {} has ids of {} byte{}, whose greatest number, {}, says that there is no target, and {} is {}",
              noun, file.path, file.type.bytes, file.type.bytes == 1 ? "" : "s", greatest, range.vocab_name,
              range.vocab);
}

static auto IdText(const uint8_t* raw, IdType type) -> std::string {
  switch (type.bytes) {
    case 1: return fmt::format("{}", NumberAt<uint8_t>(raw, 0));
    case 2:
      return type.is_signed ? fmt::format("{}", NumberAt<int16_t>(raw, 0))
                            : fmt::format("{}", NumberAt<uint16_t>(raw, 0));
    case 4:
      return type.is_signed ? fmt::format("{}", NumberAt<int32_t>(raw, 0))
                            : fmt::format("{}", NumberAt<uint32_t>(raw, 0));
    default: return fmt::format("{}", NumberAt<int64_t>(raw, 0));
  }
}

auto BadId(const TokenFile& file, const std::string& noun, TokenFormat format, int64_t index, const uint8_t* raw,
           const VocabRange& range) -> Error {
  return Fail(ExitCode::RecipeRejected,
              "{} file {}: id {} at byte {} (token {} of the file), and {} is {}; the file has another format than "
              "`data.format` = {}, or {} is too small",
              noun, file.path, IdText(raw, file.type), file.header_bytes + index * file.type.bytes, index,
              range.vocab_name, range.vocab, ToText(format), range.vocab_name);
}

}  // namespace shardc
