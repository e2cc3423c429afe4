// Which names are known where an expression of some kind stands, and what is said of one that is not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/expr/names.h"

namespace shardc {

/// "a predicate".
auto WithArticle(ExprKind kind) -> std::string_view;
/// "a predicate, an init rule and a schedule".
auto ListedKinds(const std::vector<ExprKind>& kinds) -> std::string;

/// Variables and constants.
auto KnownValues(ExprKind kind) -> std::vector<std::string_view>;
auto KnownFunctions(ExprKind kind) -> std::vector<std::string_view>;

struct UnknownName {
  std::string message;
  /// Of the known, the one that may have been meant; or empty.
  std::string closest;
};

/// Of a name that is not known in `kind`, or in others only; lists `known` where none of it is near.
auto DescribeUnknown(std::string_view name, ExprKind kind, const std::vector<std::string_view>& known) -> UnknownName;

/// "`pow` takes 2 arguments (x, y), here 1 is given".
auto WrongCount(const ExprFunctionRow& function, int num_arguments) -> std::string;

}  // namespace shardc
