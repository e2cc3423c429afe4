// The type of the ids in a file.
#pragma once

#include <cstdint>

namespace shardc {

/// How an id lies in its file: a little-endian whole number.
struct IdType {
  int64_t bytes = 0;
  /// Negative numbers are outside of every vocabulary; messages show them as they are.
  bool is_signed = false;

  friend auto operator==(const IdType&, const IdType&) -> bool = default;
};

}  // namespace shardc
