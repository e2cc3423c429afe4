// The plan: the one structure from the first pass to the running program. Vectors and typed ids, no pointers.
//
// A plan holds tables (buffers, values, parameters, units, segments, scalars), sections of ops, and the triggers that
// say when each section runs. Runtime, verifier and explain read these lists; none of them works anything out again.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/base/enum.h"
#include "compiler/base/ids.h"
#include "compiler/base/units.h"
#include "compiler/keys/recipe_entry.h"
#include "compiler/mesh/mesh.h"
#include "compiler/mesh/rank_expr.h"
#include "compiler/plan/op.h"
#include "compiler/plan/run_settings.h"
#include "compiler/plan/types.h"

namespace shardc {

/// Bytes of one arena. `offset` is -1 until `allocate`.
struct Buffer {
  std::string name;
  Arena arena = Arena::Transient;
  Category category = Category::Activations;
  Bytes bytes;
  int64_t offset = -1;

  friend auto operator==(const Buffer&, const Buffer&) -> bool = default;
};

/// A view: what lies at a byte offset of a buffer, row-major and contiguous. The offset may differ by rank or repeat.
struct Value {
  BufferId buffer;
  /// In bytes from the start of the buffer.
  RankExpr offset;
  DType dtype = DType::F32;
  Dims shape;
  Placements placement;
  std::string name;
  ValueRole role = {};

  auto num_elements() const -> int64_t { return NumElements(shape); }
  auto bytes() const -> Bytes { return Bytes{num_elements() * SizeOf(dtype)}; }
  friend auto operator==(const Value&, const Value&) -> bool = default;
};

/// One logical tensor of the model: what init rules, checkpoints and messages speak of.
struct Parameter {
  /// As Hugging Face spells it: model.layers.0.self_attn.q_proj.weight.
  std::string name;
  Dims shape;
  DType dtype = DType::F32;
  /// Block index, or -1 outside the blocks.
  int64_t layer = -1;
  bool trainable = true;
  /// Over the axes whose ranks share each matrix: Shard of the dim that is cut, or Replicate where each rank has the
  /// whole. Over the others nothing is said: there the sub-vectors are cut. local_parameter.h says what a rank holds.
  Placements placement;
  GroupId group;
  /// The number of updates that the run's count had made before the first that this parameter's moments have seen. Less
  /// than `seed.updates` where they are loaded; equal to it where they begin as 0.
  int64_t first_update = 0;
  /// True if checkpoints leave the parameter to the base: files of the seed have its bits, and no step changes them.
  bool in_base = false;
  /// The init rule with everything known put in, as text of the expression language: "normal(0, 0.02)".
  std::string init;
  Origin init_origin;

  auto num_elements() const -> int64_t { return NumElements(shape); }
  friend auto operator==(const Parameter&, const Parameter&) -> bool = default;
};

/// Settings of the optimizer that a set of parameters shares.
struct OptimizerGroup {
  std::string name;
  double weight_decay = 0;
  double lr_scale = 1;

  friend auto operator==(const OptimizerGroup&, const OptimizerGroup&) -> bool = default;
};

/// The interval of a parameter in a sub-vector, in elements. Elements that no segment covers are padding.
struct Segment {
  int64_t begin = 0;
  int64_t end = 0;
  ParameterId parameter;
  /// False for a copy that another axis coordinate counts already.
  bool counted_in_norm = true;

  friend auto operator==(const Segment&, const Segment&) -> bool = default;
};

/// The parameters of a unit that share (compute dtype, trainable, axes that they are cut over), one after another in
/// one flat vector, padded to a multiple of degree * SubVectorAlignment; rank r of the axis owns the r-th equal slice.
struct SubVector {
  UnitId unit;
  DType compute = DType::F32;
  bool trainable = true;
  /// The axes that each of its parameters is cut over: each rank along them has another part of the parameter.
  AxisSet cut;
  /// In elements, padding included.
  int64_t length = 0;
  AxisSet axes = AxesSharing(Shared::State);
  std::vector<Segment> segments;
  /// The owned slices of the state.
  ValueId shard;
  /// The owned slice in the compute type, which is what is gathered. Unset where that is the state's own type.
  ValueId compute_copy;
  ValueId gradient;
  /// Moments, in the order of OptimizerRoles; unset if this optimizer keeps no such vector.
  std::array<ValueId, CountOf<StateRole>() - 1> moments;

  friend auto operator==(const SubVector&, const SubVector&) -> bool = default;
};

/// Returns the slice that peers read to gather the whole: in the compute type.
inline auto GatheredSlice(const SubVector& sub_vector) -> ValueId {
  return sub_vector.compute_copy.valid() ? sub_vector.compute_copy : sub_vector.shard;
}

inline constexpr std::array StateRoles{
    StateRole::Parameter,
#define STATE(Name, Role, role, kept, doc) StateRole::Role,
#include "schemas/optimizers.def"
};
/// The roles of all optimizers: all but that of the parameters.
inline constexpr std::span OptimizerRoles = std::span(StateRoles).subspan<1>();

/// Returns true if this optimizer keeps a vector of this role, whatever its settings.
auto KeepsAlways(Optimizer optimizer, StateRole role) -> bool;
/// Returns true if this optimizer keeps a vector of this role with some settings.
auto MayKeep(Optimizer optimizer, StateRole role) -> bool;

/// Returns the slice that has this role.
auto StateOf(SubVector& sub_vector, StateRole role) -> ValueId&;
auto StateOf(const SubVector& sub_vector, StateRole role) -> ValueId;

/// Returns true if there is a slice of this role. Moments exist for what is trained.
inline auto HasRole(const SubVector& sub_vector, StateRole role) -> bool {
  return role == StateRole::Parameter || (sub_vector.trainable && StateOf(sub_vector, role).valid());
}

/// Calls `function(slice)` for each slice that a sub-vector may name, set or not.
template <class T, class Function>
auto ForEachSlice(T& sub_vector, Function&& function) -> void {
  for (auto* slice : {&sub_vector.shard, &sub_vector.compute_copy, &sub_vector.gradient}) {
    function(*slice);
  }
  for (auto& slice : sub_vector.moments) {
    function(slice);
  }
}

/// Returns "ROLE of model.norm.weight"; for a parameter itself, its name.
auto StateName(std::string_view parameter, StateRole role) -> std::string;

/// Parameters start at multiples of this many elements, slices too.
constexpr int64_t SubVectorAlignment = 128;

/// One group of collectives.
struct Unit {
  std::string name;
  bool reshard_after_forward = true;
  /// The recipe key that decided it.
  Origin origin;

  friend auto operator==(const Unit&, const Unit&) -> bool = default;
};

/// A number of the host's: loop state, schedules, flags, metrics.
struct Scalar {
  std::string name;
  ScalarKind kind = ScalarKind::State;
  /// For ScalarKind::Schedule: an expression over `step` and `steps`, evaluated before each step.
  std::string expression;
  ScalarRole role = ScalarRole::None;
  /// For a term of a loss: the head that has its targets, or unset where the next token is predicted.
  HeadId head = {};

  friend auto operator==(const Scalar&, const Scalar&) -> bool = default;
};

/// When a section runs. Several triggers may name one section.
struct Trigger {
  SectionKind section = SectionKind::Step;
  TriggerKind kind = TriggerKind::EachStep;
  /// For TriggerKind::EverySteps.
  int64_t every = 0;

  friend auto operator==(const Trigger&, const Trigger&) -> bool = default;
};

/// Ends the run after the step in which `scalar` is more than `above`, with this exit code.
struct Halt {
  ScalarId scalar;
  int64_t above = 0;
  ExitCode code = ExitCode::Diverged;

  friend auto operator==(const Halt&, const Halt&) -> bool = default;
};

/// A section is a flat list; repeat and end_repeat bracket loops in it.
struct Section {
  std::vector<Op> ops;

  friend auto operator==(const Section&, const Section&) -> bool = default;
};

/// The statements of a plan before its tables.
struct PlanHeader {
  Mesh mesh;
  /// Device::Cpu until the machine is known that it runs on.
  Device device = Device::Cpu;
  KernelSet kernels = KernelSet::Fused;
  /// Identity of the model: name of its family and sizes, in fixed order.
  std::map<std::string, std::string> model;
  DataSource data;
  RunSettings run;
  IdVector<HeadId, TargetHead> heads;

  friend auto operator==(const PlanHeader& a, const PlanHeader& b) -> bool = default;
};

struct Plan : PlanHeader {
  static constexpr int Version = 2;

  // Defined in plan.cpp: inline, each file that includes this one would instantiate the copies of all tables.
  Plan();
  Plan(const Plan& other);
  Plan(Plan&& other) noexcept;
  ~Plan();
  auto operator=(const Plan& other) -> Plan&;
  auto operator=(Plan&& other) noexcept -> Plan&;

  /// The `--set` texts that went into the recipe, in order.
  std::vector<std::string> overrides;
  /// The recipe with every default put in, in the order of its table of keys: for records and messages. A
  /// plan with an assumed key does not run; nothing else is decided by it.
  std::vector<RecipeEntry> recipe;
  Seed seed;

  IdVector<BufferId, Buffer> buffers;
  IdVector<ValueId, Value> values;
  IdVector<GroupId, OptimizerGroup> groups;
  IdVector<ParameterId, Parameter> parameters;
  IdVector<UnitId, Unit> units;
  IdVector<SubVectorId, SubVector> sub_vectors;
  IdVector<ScalarId, Scalar> scalars;
  std::array<Section, NumSections> sections;
  std::vector<Trigger> triggers;
  std::vector<Halt> halts;
  /// Events are numbered 0 ... num_events - 1, in the order in which ops name them first.
  int32_t num_events = 0;
  /// Bytes of each arena, from `allocate`.
  std::array<int64_t, NumArenas> arena_bytes{};
  /// Passes that have run, in order; the verifier asks of a plan what these establish.
  std::vector<PassKind> passes;
  /// Passes switched off by a developer: a plan with any is not runnable.
  std::vector<PassKind> disabled;

  auto section(SectionKind kind) -> Section& { return sections[static_cast<size_t>(kind)]; }
  auto section(SectionKind kind) const -> const Section& { return sections[static_cast<size_t>(kind)]; }
  /// Returns the number of ops of all sections.
  auto num_ops() const -> int64_t;
  auto Established(PassKind pass) const -> bool;
  /// Returns the head of the model's own targets from files; invalid if these are the next tokens.
  auto OwnHead() const -> HeadId;
  /// Returns the first scalar of that role; an invalid id if no scalar has it.
  auto FindScalar(ScalarRole role) const -> ScalarId;
  /// Returns the scalar of that role. Requires: there is one.
  auto ScalarOf(ScalarRole role) const -> ScalarId;
  friend auto operator==(const Plan& a, const Plan& b) -> bool;
};

/// Returns the bytes of all arenas of a rank together.
auto ReservedBytes(const Plan& plan) -> Bytes;
/// Returns the sequences per step, over all ranks and microbatches. Requires: data.seq is set.
auto SamplesPerStep(const Plan& plan) -> int64_t;
/// Returns the number above all targets: those of a head, or the next tokens if the id is unset.
auto VocabOf(const Plan& plan, HeadId head) -> int64_t;
/// Returns the element type of a vector of state: the parameters' own, which is one for all of a sub-vector; f32 for
/// moments.
auto StateTypeOf(const Plan& plan, const SubVector& sub_vector, StateRole role) -> DType;
/// Returns true if each of the ranks that share each matrix has the whole of these parameters.
auto IsWhole(const SubVector& sub_vector, const Mesh& mesh) -> bool;
/// Returns "layers.0", with ".frozen" and ".replicated" if a unit keeps such parameters apart.
auto NameOf(const Plan& plan, const SubVector& sub_vector) -> std::string;
/// Returns the slice of a sub-vector that a rank owns.
auto OwnedSlice(const SubVector& sub_vector, const Mesh& mesh, int64_t rank) -> Interval;
/// Returns the axes along which ranks hold copies of a sub-vector's slices. After its sum over the axes of the
/// sub-vector, a gradient is summed over these.
auto CopyAxes(const SubVector& sub_vector, const Mesh& mesh) -> AxisSet;

/// Returns the passes that plans for a device go through, in order.
auto PassesFor(Device device) -> std::vector<PassKind>;

}  // namespace shardc
