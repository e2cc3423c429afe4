// The small vocabulary of plans: ids, element types, arenas, categories, placements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/enum.h"
#include "compiler/base/ids.h"
#include "compiler/base/in_place_vector.h"
#include "compiler/base/recipe_words.h"
#include "compiler/keys/origin_key.h"
#include "compiler/mesh/mesh.h"

namespace shardc {

using BufferId = Id<struct BufferTag>;
using ValueId = Id<struct ValueTag>;
using ParameterId = Id<struct ParameterTag>;
using GroupId = Id<struct GroupTag>;
using UnitId = Id<struct UnitTag>;
using SubVectorId = Id<struct SubVectorTag>;
using ScalarId = Id<struct ScalarTag>;
using EventId = Id<struct EventTag>;
using HeadId = Id<struct HeadTag>;

/// F16 is a type of the tensors of seeds alone.
enum class DType : uint8_t { F32, F64, BF16, I32, I64, F16 };
template <>
struct EnumNames<DType> {
  static constexpr std::array<std::string_view, 6> names{"f32", "f64", "bf16", "i32", "i64", "f16"};
};
constexpr auto SizeOf(DType dtype) -> int64_t {
  switch (dtype) {
    case DType::F32: return 4;
    case DType::F64: return 8;
    case DType::BF16: return 2;
    case DType::I32: return 4;
    case DType::I64: return 8;
    case DType::F16: return 2;
  }
  return 0;
}

/// Returns true for the types that a tensor of a seed may have.
constexpr auto IsTypeOfSeed(DType dtype) -> bool {
  return dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

/// At most 8: more than any tensor here has.
using Dims = InPlaceVector<int64_t, 8>;
inline auto NumElements(const Dims& shape) -> int64_t {
  int64_t product = 1;
  for (const int64_t size : shape) {
    product *= size;
  }
  return product;
}
/// Returns "[512, 128]".
auto ToText(const Dims& shape) -> std::string;

/// Memory with one base address. Shared arenas can be read by the peers on the host; Gathered is one for all of them,
/// with the same buffers for each, to which all_gather alone writes.
enum class Arena : uint8_t { Persistent, Transient, SharedPersistent, SharedTransient, Host, Gathered };
constexpr int NumArenas = 6;
template <>
struct EnumNames<Arena> {
  static constexpr std::array<std::string_view, NumArenas> names{"persistent",       "transient", "shared-persistent",
                                                                 "shared-transient", "host",      "gathered"};
};
/// Returns true for arenas whose contents outlive a section.
constexpr auto IsPersistent(Arena arena) -> bool {
  return arena == Arena::Persistent || arena == Arena::SharedPersistent || arena == Arena::Host;
}

/// Returns true for arenas of which each rank has one of its own that its peers read.
constexpr auto IsReadByPeers(Arena arena) -> bool {
  return arena == Arena::SharedPersistent || arena == Arena::SharedTransient;
}

/// Uses of memory; the words of explain.
enum class Category : uint8_t {
  Parameters,
  Moments,
  Gradients,
  Gathered,
  Activations,
  Collective,
  Workspace,
  Data,
};
constexpr int NumCategories = 8;
template <>
struct EnumNames<Category> {
  static constexpr std::array<std::string_view, NumCategories> names{
      "parameters", "moments", "gradients", "gathered", "activations", "collective", "workspace", "data"};
};

enum class PlacementKind : uint8_t { Replicate, Shard, Partial };
struct Placement {
  PlacementKind kind = PlacementKind::Replicate;
  /// The tensor dim that is cut, for Shard.
  int8_t dim = 0;

  static auto Shard(int dim) -> Placement { return {PlacementKind::Shard, static_cast<int8_t>(dim)}; }
  static auto Partial() -> Placement { return {PlacementKind::Partial, 0}; }
  friend auto operator==(const Placement&, const Placement&) -> bool = default;
};
/// One per mesh axis.
using Placements = std::array<Placement, NumAxes>;
/// Returns the axes over which a value is placed so.
inline auto AxesPlaced(const Placements& placements, Placement placement) -> AxisSet {
  AxisSet axes;
  for (size_t i = 0; i < NumAxes; ++i) {
    axes = placements[i] == placement ? axes | AxisSet::Of(static_cast<Axis>(i)) : axes;
  }
  return axes;
}
/// Returns the axes over which a value is cut, along whatever dim.
inline auto CutAxes(const Placements& placements) -> AxisSet {
  AxisSet axes;
  for (size_t i = 0; i < NumAxes; ++i) {
    axes = placements[i].kind == PlacementKind::Shard ? axes | AxisSet::Of(static_cast<Axis>(i)) : axes;
  }
  return axes;
}
/// Sets the placement over each of `axes`.
inline auto SetPlacement(AxisSet axes, Placement placement, Placements& placements) -> void {
  for (size_t i = 0; i < NumAxes; ++i) {
    if (axes.Has(static_cast<Axis>(i))) {
      placements[i] = placement;
    }
  }
}
/// Returns true if two values are placed alike over each of `axes`.
inline auto AreAlikeOver(AxisSet axes, const Placements& a, const Placements& b) -> bool {
  bool are_alike = true;
  for (size_t i = 0; i < NumAxes; ++i) {
    are_alike = are_alike && (!axes.Has(static_cast<Axis>(i)) || a[i] == b[i]);
  }
  return are_alike;
}
/// Returns "{dp: shard(0), tp: partial(sum)}"; replicated axes are left out, so all-replicate prints "".
auto ToText(const Placements& placements) -> std::string;
auto PlacementsFromText(std::string_view text) -> ErrorOr<Placements>;

/// Other: an activation, a sum, samples, scratch; what it is for, the category of its buffer says. Gradient: of a
/// parameter, or of an activation. Vector: a sub-vector of a unit, whole or a slice of it.
enum class RoleKind : uint8_t { Other, Parameter, Gradient, Vector };

/// The part that a value plays in the model.
class ValueRole {
 public:
  ValueRole() = default;
  /// Marks a parameter, or what a rank of tp has of it, in the type that it is computed with.
  static auto Of(ParameterId id) -> ValueRole { return {RoleKind::Parameter, id.index}; }
  static auto Of(SubVectorId id) -> ValueRole { return {RoleKind::Vector, id.index}; }
  /// Marks the gradient of a parameter; with an unset id, that of an activation.
  static auto GradientOf(ParameterId id) -> ValueRole { return {RoleKind::Gradient, id.index}; }

  auto kind() const -> RoleKind { return kind_; }
  /// Returns the parameter that the value is; otherwise an invalid id.
  auto parameter() const -> ParameterId { return Get<ParameterId>(RoleKind::Parameter); }
  /// Returns the parameter whose gradient this value is; otherwise an invalid id.
  auto gradient_of() const -> ParameterId { return Get<ParameterId>(RoleKind::Gradient); }
  /// Returns the sub-vector that the value is, or is a slice of; otherwise an invalid id.
  auto sub_vector() const -> SubVectorId { return Get<SubVectorId>(RoleKind::Vector); }
  friend auto operator==(const ValueRole&, const ValueRole&) -> bool = default;

 private:
  ValueRole(RoleKind kind, int32_t index) : kind_(kind), index_(index) {}
  template <class IdType>
  auto Get(RoleKind kind) const -> IdType {
    return kind_ == kind ? IdType{index_} : IdType{};
  }

  RoleKind kind_ = RoleKind::Other;
  int32_t index_ = -1;
};

/// FIFO queues of a device: those of collectives are rows of schemas/axes.def. The CPU runs the list in order whatever
/// its streams.
enum class Stream : uint8_t {
  Compute,
#define STREAM(Name, name) Name,
#include "schemas/axes.def"
  Copy,
  Host
};
constexpr int NumStreams = 3
#define STREAM(Name, name) +1
#include "schemas/axes.def"
    ;
template <>
struct EnumNames<Stream> {
  static constexpr std::array<std::string_view, NumStreams> names{"compute",
#define STREAM(Name, name) #name,
#include "schemas/axes.def"
                                                                  "copy", "host"};
};
/// Returns the stream of collectives over these axes: that of the first of them; without axes, that of the first axis.
auto StreamOf(AxisSet axes) -> Stream;

enum class Phase : uint8_t { None, Forward, Backward, Recompute };
template <>
struct EnumNames<Phase> {
  static constexpr std::array<std::string_view, 4> names{"none", "forward", "backward", "recompute"};
};

enum class SectionKind : uint8_t { Constants, Init, Restore, Data, Step, Eval, Save };
constexpr int NumSections = 7;
template <>
struct EnumNames<SectionKind> {
  static constexpr std::array<std::string_view, NumSections> names{"constants", "init", "restore", "data",
                                                                   "step",      "eval", "save"};
};

/// At load; at a first start; at a restart; each step; every n steps; after the last step; when a stop was asked for.
enum class TriggerKind : uint8_t { Load, First, Restart, EachStep, EverySteps, End, Stop };
template <>
struct EnumNames<TriggerKind> {
  static constexpr std::array<std::string_view, 7> names{"load", "first", "restart", "step", "every", "end", "stop"};
};

/// State is saved in checkpoints; a schedule is an expression over the step; flags and metrics are written by ops.
enum class ScalarKind : uint8_t { State, Schedule, Flag, Metric };
template <>
struct EnumNames<ScalarKind> {
  static constexpr std::array<std::string_view, 4> names{"state", "schedule", "flag", "metric"};
};

/// The use that the run makes of a scalar. None: ops alone use it. TermLoss and TermEvalLoss, of a loss that has
/// several terms, are one scalar per head. Targets: how many the model's own head has in the step, if that varies.
enum class ScalarRole : uint8_t {
  None,
  Step,
  Updates,
  Lr,
  Stop,
  NonFinite,
  BadParameter,
  Loss,
  GradNorm,
  EvalLoss,
  TermLoss,
  TermEvalLoss,
  Spike,
  LeftOut,
  Targets,
};
template <>
struct EnumNames<ScalarRole> {
  static constexpr std::array<std::string_view, 15> names{"none",      "step",      "updates",       "lr",
                                                          "stop",      "nonfinite", "bad_parameter", "loss",
                                                          "grad_norm", "eval_loss", "term_loss",     "term_eval_loss",
                                                          "spike",     "left_out",  "targets"};
};
/// Returns the kind of a scalar that has this role. Requires: it is not None.
auto KindOf(ScalarRole role) -> ScalarKind;
/// Returns true if each head has a scalar of this role.
constexpr auto IsOfHead(ScalarRole role) -> bool {
  return role == ScalarRole::TermLoss || role == ScalarRole::TermEvalLoss;
}

enum class Split : uint8_t { Train, Eval };
template <>
struct EnumNames<Split> {
  static constexpr std::array<std::string_view, 2> names{"train", "eval"};
};

/// The role of a vector of state: the parameters themselves, or what an optimizer keeps of them, by the rows of
/// schemas/optimizers.def.
enum class StateRole : uint8_t {
  Parameter,
#define STATE(Name, Role, role, kept, doc) Role,
#include "schemas/optimizers.def"
};
template <>
struct EnumNames<StateRole> {
  static constexpr auto names = std::to_array<std::string_view>({
      "parameter",
#define STATE(Name, Role, role, kept, doc) #role,
#include "schemas/optimizers.def"
  });
};

enum class PassKind : uint8_t {
#define PASS(Name, stem, doc) Name,
#include "schemas/passes.def"
};
#define PASS(Name, stem, doc) +1
constexpr int NumPasses = 0
#include "schemas/passes.def"
    ;
template <>
struct EnumNames<PassKind> {
  static constexpr std::array<std::string_view, NumPasses> names{
#define PASS(Name, stem, doc) #stem,
#include "schemas/passes.def"
  };
};

/// An op that the ranks of a group do together. Agree: small numbers that all ranks then have the same.
enum class CollectiveKind : uint8_t { None, AllGather, ReduceScatter, AllReduce, Agree };
template <>
struct EnumNames<CollectiveKind> {
  static constexpr std::array<std::string_view, 5> names{"none", "all_gather", "reduce_scatter", "all_reduce",
                                                         "control"};
};

/// Which recipe line caused a thing. Left out of a plan's hash.
struct Origin {
  /// 0 where nothing in the recipe did (a default).
  int32_t line = 0;
  /// The key: "shard.reshard_after_forward".
  OriginKey key;

  friend auto operator==(const Origin&, const Origin&) -> bool = default;
};

}  // namespace shardc
