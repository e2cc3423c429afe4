// The value of one element, without generated code: what generated code is held to, and for few elements.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/expr/element_program.h"

namespace shardc {

/// The values of the program at elements, one at a time; its row norms are computed as they are needed.
class ElementEvaluator {
 public:
  explicit ElementEvaluator(ElementProgram program) : program_(std::move(program)) {}

  struct Value {
    /// Before it is rounded to float.
    double number = 0;
    bool has_fault = false;
  };
  /// Of the element of this number, row by row.
  auto At(int64_t element) -> Value;

 private:
  auto SetRowNorms(int64_t row) -> bool;
  auto Evaluate(int root, int64_t element) const -> Value;

  ElementProgram program_;
  int64_t row_ = -1;
};

}  // namespace shardc
