// The types of the keys of a recipe, as the rows of schemas/recipe_keys.def name them.
#pragma once

#include <algorithm>
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

/// Returns what a run that continues a checkpoint does not take from it, unless its recipe says otherwise.
inline auto DefaultReset() -> const std::vector<std::string>& {
  static const std::vector<std::string> words{std::string(ToText(StagePart::Schedule)),
                                              std::string(ToText(StagePart::Data))};
  return words;
}

/// The value of start.first: a word, or a table with what it begins from, `seed` or `continue`.
template <class Form>
struct FirstStartOf {
  /// Unset where it is a table.
  OneOf<StartFrom> word;
  /// The one of these two that a table has. The key of the second is `continue`.
  typename Form::template Leaf<std::string> seed = {};
  typename Form::template Leaf<std::string> continued = {};
  /// Beside `seed`: the adapter of peft that adapters begin with.
  typename Form::template Leaf<std::string> adapter = {};
  /// The words of StagePart that a run does not take from the checkpoint that it continues. Unset: DefaultReset.
  typename Form::template Leaf<std::vector<std::string>> reset = {};
  typename Form::template Leaf<std::vector<std::string>> missing = {};
  typename Form::template Leaf<std::vector<std::string>> unused = {};

  /// Returns the leaf with the path of what the run begins from, which is unset where it begins from scratch.
  auto from() const -> const typename Form::template Leaf<std::string>& { return IsSet(seed) ? seed : continued; }
  /// Returns true if the run takes this part of what it continues.
  auto Keeps(StagePart part) const -> bool {
    const std::vector<std::string>& names = IsSet(reset) ? *reset : DefaultReset();
    return IsSet(continued) && std::ranges::find(names, ToText(part)) == names.end();
  }

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
