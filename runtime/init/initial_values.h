// Initial values: what an element begins with depends on the plan's rule, (seed, parameter name, element), the tensors
// of a checkpoint that the rule reads, and nothing else, so any mesh makes the same bits and a rank makes only what it
// owns. The random streams are described in schemas/random.md; the values are made by code that LLVM generates, a
// kernel for all rules of one form.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/expr/element.h"
#include "compiler/expr/element_program.h"
#include "compiler/expr/jit/element_jit.h"
#include "compiler/expr/loaded_tensor.h"
#include "compiler/mesh/mesh.h"
#include "compiler/plan/init_rule.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// The kernels that all InitialValues of a process share, made when the first of them draws. They live as long as one
/// of these pointers or an InitialValues does: whoever makes many holds one.
auto SharedInitKernels() -> std::shared_ptr<ElementJit>;

/// Returns the program of a parameter's init rule. Requires: the plan verifies.
auto InitProgram(const Plan& plan, const Parameter& parameter) -> ElementProgram;

/// The tensor of a name of the checkpoint that the plan starts from, which outlives those who asked for it.
using OpenLoadedTensor = std::function<ErrorOr<const LoadedTensor*>(std::string_view tensor)>;

/// Of one parameter.
class InitialValues {
 public:
  explicit InitialValues(ElementSource parameter, const FindElementSource& find,
                         const FindLoadedShape& find_loaded = {}, OpenLoadedTensor open = {});
  /// Requires: the plan verifies; `open` is set where its rules read a checkpoint.
  InitialValues(const Plan& plan, const Parameter& parameter, OpenLoadedTensor open = {});

  /// Writes elements [begin, end), row by row, to out[0 ... end - begin), rounded to float. Beside `out` it takes
  /// memory for PassElements elements, 8 bytes each and 4 for each tensor that the rule reads. Errors: an element
  /// without a value, a finite float: its indices, and the rule; those of opening a tensor.
  auto Fill(Interval elements, float* out) -> Status;

 private:
  /// Elements whose loaded values are gathered at a time.
  static constexpr int64_t PassElements = 4096;

  InitialValues(InitSources sources, std::string_view name, OpenLoadedTensor open);
  struct NeedingKernel {
    ElementKernel kernel;
    /// Which of the program's instructions it needs.
    std::vector<bool> is_needed;
  };
  auto Kernel() -> const NeedingKernel&;
  auto KernelOfDoubles(int instruction) -> const NeedingKernel&;
  auto OpenTensors() -> Status;
  auto Gather(const std::vector<bool>& is_needed, int64_t first, int64_t count) -> void;
  auto RunKernel(const NeedingKernel& made, int64_t first, int64_t passes, void* out) -> bool;
  auto Evaluator() const -> ElementEvaluator { return ElementEvaluator(program_, loaded_); }
  auto FillFromPasses(Interval elements, float* out) -> bool;
  auto SetRowNorms(int64_t row) -> bool;
  auto Error(Interval elements) const -> Status;

  std::shared_ptr<ElementJit> kernels_;
  ElementSource parameter_;
  ElementProgram program_;
  /// Of the program; made when the first value is.
  std::optional<NeedingKernel> kernel_;
  /// By instruction, those of doubles: of row norms and of positions.
  std::map<int, NeedingKernel> kernels_of_doubles_;
  /// Of the keys, the words of each next to each other.
  std::vector<uint64_t> key_words_;
  OpenLoadedTensor open_;
  /// One for each of the program's loads, once opened.
  std::vector<const LoadedTensor*> loaded_;
  /// The numbers of the elements that one load reads; and what all read.
  std::vector<double> positions_;
  std::vector<float> gathered_;
};

}  // namespace shardc
