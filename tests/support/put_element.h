// Elements of any type of a plan, made of a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compiler/base/bfloat16.h"
#include "compiler/plan/types.h"

namespace shardc {

/// Writes the number as an element of the type: F32, BF16, F64, or else I64.
inline auto PutElement(DType dtype, double number, std::byte* to) -> void {
  const auto put = [&](const auto& element) { std::memcpy(to, &element, sizeof(element)); };
  if (dtype == DType::F32) {
    put(static_cast<float>(number));
  } else if (dtype == DType::BF16) {
    BFloat16 element{};
    Store(element, static_cast<float>(number));
    put(element);
  } else if (dtype == DType::F64) {
    put(number);
  } else {
    put(static_cast<int64_t>(number));
  }
}

}  // namespace shardc
