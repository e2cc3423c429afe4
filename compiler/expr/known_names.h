// Which names are known where an expression of some kind stands, and what is said of one that is not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/expr/names.h"

namespace shardc {

/// Returns the kind with its article: "a predicate".
auto WithArticle(ExprKind kind) -> std::string_view;
/// Returns a list of kinds: "a predicate, an init rule and a schedule".
auto ListedKinds(const std::vector<ExprKind>& kinds) -> std::string;

/// Returns the variables and constants of a kind.
auto KnownValues(ExprKind kind) -> std::vector<std::string_view>;
auto KnownFunctions(ExprKind kind) -> std::vector<std::string_view>;

struct UnknownName {
  std::string message;
  /// The known name that may have been meant; or empty.
  std::string closest;
};

/// Describes a name that is not known in `kind`, or known in other kinds only. Lists `known` if none of them is near.
auto DescribeUnknown(std::string_view name, ExprKind kind, const std::vector<std::string_view>& known) -> UnknownName;

/// Returns "`pow` takes 2 arguments (x, y), here 1 is given".
auto WrongCount(const ExprFunctionRow& function, int num_arguments) -> std::string;

}  // namespace shardc
