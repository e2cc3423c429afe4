// The rows of schemas/fit_keys.def: keys that decide how much memory a plan takes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "compiler/keys/origin_key.h"

namespace shardc {

/// A key or two that a combination of the search sets to one of several values.
enum class Subject : uint8_t {
  // These decide the FLOPs and the bytes on the wire of a step.
  Layout,
  Policy,
  Units,
  Reduce,
  Reshard,
  // These change memory alone.
  Chunks,
  PrefetchForward,
  PrefetchBackward,
  Ring,
  Workspace
};
constexpr size_t NumSubjects = 10;

/// Memory of a rank, by what it is there for.
enum class Held : uint8_t {
  Nothing,
  /// Parts of the state that get smaller with more ranks along dp.
  Slices,
  /// Activations of a microbatch of several sequences, and of one.
  Sequences,
  OneSequence,
  Logits,
  /// Results of a block that forward keeps for backward.
  BlockResults,
  /// Whole units or their gradients; those of which one parameter is the most.
  Units,
  LargeParameter,
  /// Units that are gathered before they are read.
  AheadInForward,
  AheadInBackward,
  /// Whole units, and parts of them, that are kept from forward to backward.
  KeptUnits,
  KeptSlices,
  /// Scratch that a key bounds.
  Scratch
};

/// A condition on a recipe, or on the layout that a search tries.
enum class FitWhen : uint8_t {
  Always,
  /// The gradients of several microbatches are added.
  Added,
  /// Several ranks share the state.
  Sliced,
  /// Computed in a type other than fp32.
  Rounded,
  /// Frozen parameters are kept in fp32.
  FrozenWide,
  OnGpu
};

/// The facts that conditions ask about.
struct FitFacts {
  int64_t dp = 1;
  int64_t accumulate = 1;
  bool is_rounded = false;
  bool is_frozen_wide = false;
  bool is_on_gpu = false;
};
auto Holds(FitWhen when, const FitFacts& facts) -> bool;

struct FitKey {
  OriginKey key;
  /// Empty texts follow the last value.
  std::array<std::string_view, 4> values{};
  FitWhen shown = FitWhen::Always;
  FitWhen offered = FitWhen::Always;
  std::optional<Subject> subject;
  std::array<Held, 2> lowers{};
};

auto FitKeys() -> std::span<const FitKey>;
/// Returns the first row of the subject.
auto FitKeyOf(Subject subject) -> const FitKey&;
/// Returns the key that lowers such memory; empty for Held::Nothing.
auto KeyThatLowers(Held held) -> std::string_view;

}  // namespace shardc
