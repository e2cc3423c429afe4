// What passes, verifier, explain and runtime ask about an op besides its shapes, cost and VJP, as data. Each op's file
// defines its facts: `const OpFacts op::Matmul::Facts{.work = Work::Product};`. No one outside of that file asks which
// op it is; a fact that is not set has the meaning of its default.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

/// The operand of a collective that peers read where it lies, in an arena that they can read. IfGradients: the operand
/// if it is a slice of gradients; small operands go through memory that belongs to no arena.
enum class PeerReads : uint8_t { None, Operand, IfGradients };

/// Which stream an op runs on. Axes: the stream of the axes of its group, where peers read its operand, else Compute.
enum class StreamClass : uint8_t { Compute, Axes, Host };

/// Contents of the bytes that an op writes, for those who follow what a value is made of.
enum class Meaning : uint8_t {
  /// A result that the op computes from its operands.
  Computed,
  /// The op moves no bytes: it gives another name to those of its operand.
  Renamed,
  /// Those of its operand.
  Copied,
  /// Those of its operand, in another type; the same bytes where the types are one.
  Cast,
  /// The sum of its two operands.
  Sum,
  /// The first operand divided by the second.
  Quotient,
  /// One number everywhere: the `value` of the op.
  Constant,
};

/// Work that recompute policies name: the products of matrices, and attention.
enum class Work : uint8_t { Other, Product, Attention };

/// Fields of attention and of its backward.
struct AttentionFact {
  std::string_view queries;
  std::string_view keys;
  /// The gradient of the queries, if the op makes it.
  std::string_view queries_gradient;
  /// The attribute that holds the width of a head.
  std::string_view head_dim;
  /// The field that says where documents begin; its value may be unset.
  std::string_view starts;

  auto is_set() const -> bool { return !queries.empty(); }
};

/// How a kernel cuts its work for the threads of a rank. Rows, columns and elements: of `field`, seen as a matrix of
/// its leading dims by its last.
enum class WorkCut : uint8_t {
  /// One thread does it: communication, files, single numbers.
  None,
  Elements,
  Rows,
  Columns,
  /// Two loops, one after the other.
  RowsThenColumns,
  /// Elements that the rank owns of each parameter of the op's `sub_vector`.
  OwnedSegments,
  /// By the `formula` of the fact, which stands with the op.
  Formula,
};
/// How many threads can have work.
struct WorkParts {
  int64_t all = 1;
  /// Threads among them that can multiply matrices.
  int64_t products = 1;
};
struct ThreadFact {
  WorkCut cut = WorkCut::None;
  std::string_view field;
  /// Set with WorkCut::Formula, and only then.
  auto(*formula)(const OpBody& body, const Plan& plan) -> WorkParts = nullptr;
};

/// The use that an op makes of the state of a sub-vector (its `sub_vector`), or of the checkpoint that holds the state.
enum class StateUse : uint8_t {
  None,
  Draw,
  Load,
  LoadMoment,
  Update,
  CheckFinite,
  BeginSave,
  Save,
  CommitSave,
  Restore,
  RestoreScalars,
};
/// Returns true if the op writes to the checkpoint that is being saved: such ops run in the order of the section.
constexpr auto WritesCheckpoint(StateUse use) -> bool {
  return use == StateUse::BeginSave || use == StateUse::Save || use == StateUse::CommitSave;
}

/// The part of the update that an op does: the squares of gradients, the factor that clips by their sum, the update
/// itself.
enum class UpdatePart : uint8_t { None, Squares, Clip, Apply };

/// Scalars that one op names, at most.
constexpr int MostScalarsOfOp = 6;

/// The effect of an op on a scalar. SetByRank: each rank sets it to a number of its own. SetByAll: all ranks set it to
/// the same number.
enum class ScalarEffect : uint8_t { Read, Add, Reset, SetByRank, SetByAll };
struct ScalarFact {
  std::string_view field;
  ScalarEffect effect = ScalarEffect::Read;
  /// The role that the scalar has to have; None: any.
  ScalarRole role = ScalarRole::None;
  /// The field may be unset.
  bool is_optional = false;
};

/// Numbers that are not finite and no fault: minus infinity where a rank has no column of the vocabulary; NaN for a
/// mean of nothing.
enum class NonFiniteResult : uint8_t { Fault, MinusInfinity, NaN };

/// A matrix whose rows or columns are the vocabulary, and the ids that pick from them. `vocab_axes` and `head` of the
/// op say how it is cut and whose vocabulary it is.
struct VocabularyFact {
  std::string_view matrix;
  bool by_rows = false;
  /// The field that holds the ids; empty if the op has none.
  std::string_view ids;
  /// The ids are tokens, each an address. Without it they are targets, of which -1 stands for a position without a
  /// target.
  bool as_tokens = false;

  auto is_set() const -> bool { return !matrix.empty(); }
};

/// A size of the model, or a number of it, as an op shows it.
enum class ModelKey : uint8_t { Hidden, Heads, KvHeads, HeadDim, Ffn, Seq, NormEps, RopeFrequency };
struct ModelFact {
  ModelKey key = ModelKey::Hidden;
  /// The name of a value or of an attribute. The size is that of dim `dim` of the value (-1: the last) times `times`,
  /// in units of the attribute `unit` if that is set; without `dim` it is the attribute itself.
  std::string_view field;
  std::optional<int> dim;
  int64_t times = 1;
  std::string_view unit;
  /// Cut over tp: the rank shows the equal range of it that it has.
  bool is_cut = false;
  /// The op takes even sizes only.
  bool is_even = false;
};

/// The dims of a field, a letter each, slowest first. Dims with one letter run over the same index. `*` stands for as
/// many dims as are left, the same in all fields of an op; `1` for a dim of one element.
struct DimFact {
  std::string_view field;
  std::string_view letters;
  /// Letters on which a result does not depend, though the operands have them: another operand has what all ranks
  /// made of them.
  std::string_view ignores;
  /// The index of `*` in the letters; their number if they have no `*`.
  size_t star = std::min(letters.find('*'), letters.size());
};

/// Over which axes an op makes a dim that no operand has.
enum class MadeOver : uint8_t { None, DataAxes, VocabularyAxes };

/// How dims of operands map to dims of results. From this the placement of results follows: a letter that is cut in the
/// operands is cut in the results; a result without it is a term of a sum, where the op adds up over it.
struct DimRule {
  std::array<DimFact, 12> fields;
  /// Letters over which the op adds up. `*`: the dims that it stands for.
  std::string_view summed;
  /// Letters that a rank needs whole.
  std::string_view whole;
  /// A letter that no operand has (or only one that was made so), and over which axes the ranks each make their range
  /// of it.
  char made = ' ';
  MadeOver made_over = MadeOver::None;

  auto is_set() const -> bool { return !fields[0].field.empty(); }
};

/// A set of sections.
struct SectionSet {
  uint8_t bits = 0;

  constexpr SectionSet() = default;
  constexpr SectionSet(std::initializer_list<SectionKind> sections) {
    for (const SectionKind section : sections) {
      Add(section);
    }
  }
  static constexpr auto All() -> SectionSet {
    using enum SectionKind;
    return {Constants, Init, Restore, Data, Step, Eval, Save};
  }
  constexpr auto Add(SectionKind section) -> void {
    bits = static_cast<uint8_t>(bits | 1U << static_cast<unsigned>(section));
  }
  constexpr auto empty() const -> bool { return bits == 0; }
  constexpr auto Has(SectionKind section) const -> bool { return (bits >> static_cast<unsigned>(section) & 1U) != 0; }
};

/// A size that a kernel of the family Cuda spreads over the blocks of a launch along a dim that has few of them: the
/// product of the dims [begin, end) of a field.
struct LaunchFact {
  /// "sequences".
  std::string_view what;
  std::string_view field;
  size_t begin = 0;
  size_t end = 1;
  /// The attribute in whose multiples the size counts; empty if it counts in elements.
  std::string_view unit;
  /// How many of these a block takes at least.
  int64_t of_block = 1;
};

struct OpFacts {
  /// Sections that may have the op.
  SectionSet sections = {SectionKind::Step, SectionKind::Eval};
  /// Sections in which it may write bytes that outlive a section: state, constants, samples.
  SectionSet lasting = {};
  /// The first value that the op reads is what each rank brings, the first that it writes is what each gets; `axes` is
  /// the group.
  CollectiveKind collective = CollectiveKind::None;
  PeerReads peer_reads = PeerReads::None;
  /// Peers on the host read its scratch, where it has some.
  bool peers_read_scratch = false;
  /// Does run.attention_workspace bound its scratch on devices of the family Cuda?
  bool has_bounded_scratch = false;
  /// Sizes that are bounded on devices of the family Cuda; rows without a field say nothing.
  std::array<LaunchFact, 2> launch;
  StreamClass stream = StreamClass::Compute;
  Meaning meaning = Meaning::Computed;
  Work work = Work::Other;
  AttentionFact attention;
  ThreadFact threads;
  StateUse state = StateUse::None;
  UpdatePart update = UpdatePart::None;
  NonFiniteResult non_finite = NonFiniteResult::Fault;
  /// Reads samples of the data from `sample` on.
  bool loads_samples = false;
  /// Ends a forward: turns `logits` into a term of the loss.
  bool is_loss = false;
  /// Its results in f64 are sums over samples.
  bool sums_samples = false;
  /// The state that it updates stays sound if a predicate leaves the op out.
  bool may_be_left_out = false;
  VocabularyFact vocabulary;
  DimRule dims;
  /// The rule of an op whose attributes or ranks of values decide; null where `dims` is it.
  auto(*dims_of)(const OpBody& body, const Plan& plan) -> const DimRule& = nullptr;
  std::array<ScalarFact, MostScalarsOfOp> scalars;
  std::array<ModelFact, 4> model;
};

auto FactsOf(OpKind kind) -> const OpFacts&;
inline auto FactsOf(const OpBody& body) -> const OpFacts& { return FactsOf(static_cast<OpKind>(body.index())); }
inline auto FactsOf(const Op& op) -> const OpFacts& { return FactsOf(op.body); }

// Fields by name, for who has a fact that names one.

/// Returns the value of a field that is read, written or both; an invalid id if the op has no such field or it is not
/// set.
auto ValueIn(const OpBody& body, std::string_view field) -> ValueId;

/// By kind: has the op an attribute of this type?
template <class T>
inline constexpr std::array<bool, NumOpKinds> HasAttribute{
#define IN(x)
#define IN_IF(x)
#define OUT(y)
#define OVER(y, x)
#define ACC(y)
#define INOUT(p)
#define SCRATCH(s)
#define MAYBE(y)
#define BUFFER(b)
#define ATTR(Type, name) || std::is_same_v<Type, T>
#define COST
#define OP(Type, mnemonic, differentiable, fields, doc) false fields,
#include "schemas/ops.def"
};

template <class T>
struct AttributeFinder : IgnoreFields {
  explicit AttributeFinder(std::string_view the_name) : name(the_name) {}
  std::string_view name;
  const T* found = nullptr;
  template <class Other>
  auto Attr(std::string_view own, const Other& value) -> void {
    if constexpr (std::is_same_v<Other, T>) {
      found = own == name ? &value : found;
    }
  }
};

/// Returns the attribute of this name and type; null if the op has no such attribute.
template <class T>
auto AttributeOf(const OpBody& body, std::string_view name) -> const T* {
  // Few ops have any of a type, and those who look for one ask all ops.
  if (!HasAttribute<T>[body.index()]) {
    return nullptr;
  }
  AttributeFinder<T> finder(name);
  VisitBody(body, [&](const auto& concrete) { VisitFields(concrete, finder); });
  return finder.found;
}

/// A collective that moves values.
struct Collective {
  CollectiveKind kind;
  /// The values that each rank brings and gets.
  ValueId from;
  ValueId to;
  AxisSet axes;
};
/// Returns nothing for an op that is not a collective, or that moves no value (Agree).
auto CollectiveOf(const Op& op) -> std::optional<Collective>;

/// Returns true if an op takes part in a meeting of ranks.
inline auto IsCollective(const Op& op) -> bool { return FactsOf(op).collective != CollectiveKind::None; }

/// Returns true if peers read the operand of the op where it lies.
auto PeersRead(const OpBody& body, const Plan& plan) -> bool;

/// Operand and result of an op that moves bytes as they are, or gives them another name.
struct Movement {
  ValueId from;
  ValueId to;
};
/// Returns the movement of an op that copies its operand, byte for byte.
auto CopyOf(const Op& op) -> std::optional<Movement>;
/// Returns the movement of an op that names the bytes of a loop's last pass as those of its first.
auto CarryOf(const Op& op) -> std::optional<Movement>;
/// Returns the movement of an op that writes its operand in another type, or in the same.
auto CastOf(const Op& op) -> std::optional<Movement>;
/// Operands of a division.
struct Quotient {
  ValueId dividend;
  ValueId divisor;
};
auto QuotientOf(const Op& op) -> std::optional<Quotient>;
/// Returns the number that an op writes everywhere; nothing for an op that writes anything else.
auto ConstantOf(const Op& op) -> std::optional<double>;

/// Samples that an op loads, and the values that it writes them to: invalid if it does not load them.
struct SampleLoad {
  Split split;
  const RankExpr* sample;
  HeadId head;
  ValueId tokens;
  ValueId targets;
  ValueId starts;
  ValueId positions;
};
auto SampleLoadOf(const Op& op) -> std::optional<SampleLoad>;

/// Use that an op makes of a scalar of the plan.
struct ScalarUse {
  std::string_view field;
  ScalarId scalar;
  ScalarEffect effect;
  ScalarRole role;
};
using ScalarUses = InPlaceVector<ScalarUse, MostScalarsOfOp>;
/// Returns the uses of the scalars that are set.
auto ScalarsOf(const Op& op) -> ScalarUses;

/// The sub-vector, the role and the value of state that an op uses.
struct StateTouch {
  SubVectorId sub_vector;
  StateRole role;
  ValueId value;
};
/// Requires: the op has `sub_vector`. Its role is that of the parameters where the op has no `role`.
auto StateTouchOf(const Op& op) -> StateTouch;

}  // namespace shardc
