// The value of one element, without generated code: what generated code is held to, and for few elements.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/expr/element_program.h"
#include "compiler/expr/loaded_tensor.h"

namespace shardc {

/// The values of the program at elements, one at a time; its row norms are computed as they are needed.
class ElementEvaluator {
 public:
  /// Evaluates a program. `loaded`: one for each of program.loads; they outlive it. Without them each loaded element is
  /// 1.
  explicit ElementEvaluator(ElementProgram program, std::vector<const LoadedTensor*> loaded = {});

  struct Value {
    /// Before it is rounded to float.
    double number = 0;
    bool has_fault = false;
  };
  /// Returns the value of the element of this number, row by row.
  auto At(int64_t element) -> Value;

  /// Returns true if the element is known to have no value whatever is loaded: an operation that it needs for certain
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
