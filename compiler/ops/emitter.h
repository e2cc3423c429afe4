// Adds ops and the values they write to a plan. Model builders and passes emit through it, so that every op carries its
// block, phase, origin and pass.
#pragma once

#include <string>
#include <vector>

#include "compiler/ops/ops.h"

namespace shardc {

class Emitter {
 public:
  /// Appends ops to `ops`, which outlives the emitter and is not a section that grows meanwhile elsewhere.
  Emitter(Plan* plan, std::vector<Op>* ops, PassKind pass) : plan_(plan), ops_(ops), pass_(pass) {}

  auto plan() -> Plan& { return *plan_; }
  auto set_layer(int64_t layer) -> void { layer_ = static_cast<int32_t>(layer); }
  auto set_phase(Phase phase) -> void { phase_ = phase; }
  auto set_origin(Origin origin) -> void { origin_ = origin; }
  auto origin() const -> Origin { return origin_; }

  /// Makes a value with a buffer of its own.
  auto New(const ValueType& type, Category category, std::string name, Arena arena = Arena::Transient) -> ValueId;
  /// Makes a value of `type` on the bytes of `of`, and of its role: for OVER and ACC results.
  auto Alias(ValueId of, const ValueType& type, std::string name) -> ValueId;
  /// Makes a value of `type` at a byte offset of a buffer.
  auto View(BufferId buffer, RankExpr offset, const ValueType& type, std::string name) -> ValueId;

  /// Appends an op. A buffer that it makes peers read moves from the transient arena to the shared one.
  auto Emit(OpBody body) -> Op&;

 private:
  Plan* plan_;
  std::vector<Op>* ops_;
  PassKind pass_;
  int32_t layer_ = -1;
  Phase phase_ = Phase::None;
  Origin origin_;
};

}  // namespace shardc
