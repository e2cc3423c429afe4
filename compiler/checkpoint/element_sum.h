// A sum over the elements of a tensor, by which a run recognises the numbers that it began from: the same whatever mesh
// reads them, in any order and in any type that holds them. Ranks add up the sums of what each has read.
//
// Sum over all elements, modulo 2^64, of m ^ (m >> 29), where m = (e ^ (i + 1) * 0x9e3779b97f4a7c15) *
// 0xbf58476d1ce4e5b9; i is the index of the element, row-major, and e its bits in f32. Each term is another one for
// each e, so that one changed element always changes the sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/base/error_or.h"
#include "compiler/mesh/box_interval.h"
#include "compiler/plan/types.h"

namespace shardc {

/// Returns the sum over elements of a tensor. Requires: the type is f32, bf16 or f16.
auto SumOfElements(const BoxInterval& elements, DType dtype, const std::byte* bytes) -> uint64_t;

/// Returns 16 hex digits.
auto SumText(uint64_t sum) -> std::string;
/// Errors: ExitCode::Checkpoint: the text is not 16 hex digits.
auto SumFromText(std::string_view text) -> ErrorOr<uint64_t>;

}  // namespace shardc
