// What each element of one parameter is: a rule with everything known put in, and the rules of the parameters that it
// copies, down to draws and to tensors of a checkpoint, as one list of instructions, operands before the instructions
// on them. An element is evaluated by going through the list, for one element (evaluate_element.h) or for many at once,
// by generated code (compiler/expr/jit).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/expr/functions.h"
#include "compiler/expr/random.h"
#include "compiler/expr/tree.h"

namespace shardc {

enum class ElementOpKind {
  /// number[slot].
  Number,
  /// The operation of a node of an expression, on the operands.
  Operation,
  Function,
  /// The index, at the position, along the dimension whose size is number[slot]; number[slot + 1] elements lie between
  /// one index and the next.
  Index,
  /// A draw from a law whose parts are number[slot ...]; or one whose arguments are the operands.
  DrawNormal,
  DrawUniform,
  DrawTruncNormal,
  /// Only of a law whose parts are known: the interval lies beside the mean.
  DrawTailNormal,
  /// The operand, if it is a whole number from 0 to below number[slot]; else a fault.
  Checked,
  /// The operand, which is the element at the position of another parameter, rounded to float; with `to_bfloat16`, once
  /// more.
  Rounded,
  /// The element at the position of tensor loads[slot].
  Loaded,
  /// A fault.
  None,
};

struct ElementOp {
  ElementOpKind kind = ElementOpKind::None;
  ExprNodeKind operation = ExprNodeKind::Broken;
  ExprFunction function = ExprFunction::Min;
  /// Instructions before this one.
  std::vector<int> operands = {};
  int slot = -1;
  /// The instruction that has the element's number, row by row, for Index, Rounded, Loaded and draws; -1 for the
  /// element itself.
  int position = -1;
  /// The stream's key, and which draw of its rule it is, for draws.
  int stream = 0;
  int draw = 0;
  bool to_bfloat16 = false;
};

/// The root of the sum of the squares of an instruction's values over a row goes into number[slot], before the elements
/// of the row are evaluated.
struct RowNorm {
  int root = -1;
  int slot = -1;
};

/// The tensor that an instruction Loaded reads.
struct ElementLoad {
  std::string tensor;
  int64_t num_elements = 0;
  /// The instruction.
  int op = -1;
};

struct ElementProgram {
  std::vector<ElementOp> ops;
  /// The instruction with the element's value.
  int root = -1;
  /// Each may need those before it.
  std::vector<RowNorm> row_norms;
  /// Elements in a row: all, of a vector.
  int64_t row_size = 0;
  std::vector<double> numbers;
  /// Keys of the parameter itself, then of those that it copies.
  std::vector<PhiloxKey<uint64_t>> keys;
  /// One for each instruction Loaded. No position of one depends on what another reads.
  std::vector<ElementLoad> loads;

  /// Returns true if the element is one draw from a law that is known.
  auto is_draw() const -> bool;

  /// Returns a text that is equal for programs whose ops and root are equal: they differ in numbers and keys only.
  auto Shape() const -> std::string;

  /// Returns for each instruction whether instruction `root` needs its value.
  auto NeededBy(int root) const -> std::vector<bool>;
};

/// A parameter as rules see it.
struct ElementSource {
  /// Reduced.
  Expr rule;
  std::vector<int64_t> shape;
  PhiloxKey<uint64_t> key{};
  bool is_bfloat16 = false;
};
/// Returns "`1 / index(0)` has no value at element [0, 3]", for the element of this number, row by row.
auto NoValueText(const ElementSource& parameter, int64_t element) -> std::string;

/// The parameter of a name, or nothing.
using FindElementSource = std::function<const ElementSource*(std::string_view name)>;

/// The shape of the checkpoint's tensor of a name, or nothing. An empty function: no checkpoint is loaded.
using FindLoadedShape = std::function<const std::vector<int64_t>*(std::string_view tensor)>;

/// Errors: expr-domain: a copy of a parameter or tensor that there is not, with another number of indices than it has
/// dims, or of a parameter that in the end copies itself; row_norm in what is copied with indices; an index of `seed`
/// that depends on what is loaded; more than MaxExprOperations.
auto MakeElementProgram(const ElementSource& parameter, const FindElementSource& find,
                        const FindLoadedShape& find_loaded = {}) -> ExprResult<ElementProgram>;

/// Returns why a program is too long for an init rule, which becomes machine code; empty if it is not too long.
auto LengthFault(const ElementProgram& program) -> std::string;

}  // namespace shardc
