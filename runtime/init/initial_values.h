// Initial values: what an element begins with depends on the plan's rule, (seed, parameter name, element), and nothing
// else, so any mesh makes the same bits and a rank makes only what it owns. The random streams are described in
// schemas/random.md; the values are made by code that LLVM generates, a kernel for all rules of one form.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/expr/element_program.h"
#include "compiler/expr/jit/element_jit.h"
#include "compiler/mesh/mesh.h"
#include "compiler/plan/init_rule.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// The kernels that all InitialValues of a process share, made when the first of them draws. They live as long as one
/// of these pointers or an InitialValues does: whoever makes many holds one.
auto SharedInitKernels() -> std::shared_ptr<ElementJit>;

/// Of one parameter.
class InitialValues {
 public:
  explicit InitialValues(ElementSource parameter, const FindElementSource& find);
  /// Requires: the plan verifies.
  InitialValues(const Plan& plan, const Parameter& parameter);

  /// Writes elements [begin, end), row by row, to out[0 ... end - begin), rounded to float.
  /// Errors: an element without a value, a finite float: its indices, and the rule.
  auto Fill(Interval elements, float* out) -> Status;

 private:
  InitialValues(InitSources sources, std::string_view name);
  auto Kernel() -> const ElementKernel&;
  auto FillFromPasses(Interval elements, float* out) -> bool;
  auto SetRowNorms(int64_t row) -> bool;
  auto Error(Interval elements) const -> Status;

  std::shared_ptr<ElementJit> kernels_;
  ElementSource parameter_;
  ElementProgram program_;
  /// Of the program; made when the first value is.
  std::optional<ElementKernel> kernel_;
  /// Of the keys, the words of each next to each other.
  std::vector<uint64_t> key_words_;
};

}  // namespace shardc
