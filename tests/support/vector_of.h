// Parameters for tests of initial values.
#pragma once

#include <string_view>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/expr/element_program.h"

namespace shardc {

constexpr int64_t AnyLength = int64_t{1} << 52;

/// Makes a vector longer than any test's, or the matrix given.
/// Requires: the rule, with nothing to put in, reads.
inline auto VectorOf(std::string_view rule, uint64_t seed, std::string_view name,
                     std::vector<int64_t> shape = {AnyLength}) -> ElementSource {
  const auto parsed = ParseExpr(rule, ExprKind::Rule);
  CHECK(parsed.ok(), "{}: {}", rule, parsed.errors.front().message);
  auto reduced = ReduceRule(parsed.value, {});
  CHECK(reduced.ok(), "{}: {}", rule, reduced.errors.front().message);
  return {.rule = std::move(reduced.value), .shape = std::move(shape), .key = RandomKey(seed, name)};
}

inline auto NoOthers(std::string_view) -> const ElementSource* { return nullptr; }

}  // namespace shardc
