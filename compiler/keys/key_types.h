// The types of the keys of a recipe, as the rows of schemas/recipe_keys.def name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler/base/check.h"
#include "compiler/base/recipe_words.h"

namespace shardc {

/// The word of a key that takes a few: one of E's. What else a recipe says is kept as text, for CheckValues to refuse.
template <NamedEnum E>
class OneOf {
 public:
  OneOf() = default;
  explicit OneOf(E value) : text_(ToText(value)), value_(value) {}
  explicit OneOf(std::string text) : text_(std::move(text)), value_(FromText<E>(text_)) {}

  auto text() const -> const std::string& { return text_; }
  auto is_accepted() const -> bool { return value_.has_value(); }
  /// Returns the enumerator, for switches and comparisons. Requires: it is accepted.
  operator E() const {
    CHECK(value_, "`{}` is read as a word that it is not", text_);
    return *value_;
  }
  friend auto operator==(const OneOf&, const OneOf&) -> bool = default;

 private:
  std::string text_;
  std::optional<E> value_;
};

/// `true`, `false`, or the text of a boolean expression.
struct Condition {
  std::string text = "false";

  friend auto operator==(const Condition&, const Condition&) -> bool = default;
};

/// A number or the text of an expression, kept as text.
struct Formula {
  std::string text;

  friend auto operator==(const Formula&, const Formula&) -> bool = default;
};

/// 0 or the text of a size in bytes, such as "4 GiB", kept as text.
struct ByteSize {
  std::string text;

  friend auto operator==(const ByteSize&, const ByteSize&) -> bool = default;
};

template <class T>
auto IsSet(const std::optional<T>& leaf) -> bool {
  return leaf.has_value();
}

/// The value of start.first: a word, or the table { seed = ..., missing = [...], unused = [...] }.
template <class Form>
struct FirstStartOf {
  /// Unset where it is a table.
  OneOf<StartFrom> word;
  /// Set in a table, always.
  typename Form::template Leaf<std::string> seed = {};
  typename Form::template Leaf<std::vector<std::string>> missing = {};
  typename Form::template Leaf<std::vector<std::string>> unused = {};

  friend auto operator==(const FirstStartOf&, const FirstStartOf&) -> bool = default;
};

namespace key_type {
using Int = int64_t;
using Real = double;
using Bool = bool;
using Text = std::string;
using Texts = std::vector<std::string>;
using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;
template <class E>
using OneOf = shardc::OneOf<E>;
using Formula = shardc::Formula;
using ByteSize = shardc::ByteSize;
using Condition = shardc::Condition;
/// Stands for FirstStartOf a form.
struct FirstStart {};

/// The C++ type of a key in a form.
template <class Form, class T>
using In = std::conditional_t<std::is_same_v<T, FirstStart>, FirstStartOf<Form>, T>;

/// Stands for REQUIRED and UNSET in the rows: the value-initialised value.
struct NoDefault {};
template <class T, class D>
auto DefaultOf(const D& value) -> T {
  if constexpr (std::is_same_v<D, NoDefault>) {
    return T{};
  } else if constexpr (std::is_same_v<T, shardc::Condition> || std::is_same_v<T, shardc::Formula> ||
                       std::is_same_v<T, shardc::ByteSize>) {
    return T{.text = value};
  } else if constexpr (std::is_same_v<D, StartFrom>) {
    return T{.word = shardc::OneOf<StartFrom>(value)};
  } else {
    return T(value);
  }
}
}  // namespace key_type

}  // namespace shardc
