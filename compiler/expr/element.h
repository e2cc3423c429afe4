// The value of one element, without generated code: what generated code is held to, and for few elements.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/expr/element_program.h"
#include "compiler/expr/loaded_tensor.h"

namespace shardc {

/// The values of the program at elements, one at a time; its row norms are computed as they are needed.
class ElementEvaluator {
 public:
  /// `loaded`: one for each of program.loads; they outlive it. Without them 1 stands for each element that is loaded.
  explicit ElementEvaluator(ElementProgram program, std::vector<const LoadedTensor*> loaded = {});

  struct Value {
    /// Before it is rounded to float.
    double number = 0;
    bool has_fault = false;
  };
  /// Of the element of this number, row by row.
  auto At(int64_t element) -> Value;

  /// Whether the element has no value whatever is loaded, as far as that shows: an operation that it needs for certain
  /// has none, and does not depend on what is loaded.
  auto HasKnownFault(int64_t element) -> bool;

 private:
  auto SetRowNorms(int64_t row) -> bool;
  auto DependOnLoaded() const -> std::vector<bool>;
  auto Evaluate(int root, int64_t element) const -> Value;

  ElementProgram program_;
  std::vector<const LoadedTensor*> loaded_;
  int64_t row_ = -1;
};

}  // namespace shardc
