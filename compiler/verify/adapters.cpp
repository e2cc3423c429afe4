// Low-rank adapters: what is added beside a projection whose plan has an adapter for it. In the forward of a step and
// of an evaluation the product of B and of the scaled product of A is added to that of the projection, of the same x,
// before anything else takes it; each product of A has its own of B. What is computed again and the gradients follow
// from the forward (backward.cpp), that a frozen matrix keeps its values from its sub-vector (state.cpp).
#include <cmath>
#include <map>

#include "compiler/keys/adapters.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

/// The matrices that belong together.
struct AdapterMatrices {
  ParameterId weight;
  ParameterId down;
  ParameterId up;
};

class AdapterVerifier {
 public:
  AdapterVerifier(const Plan& plan, Findings& findings)
      : plan_(plan), findings_(findings), sizes_(ResolveAdapters(ReadKeys(plan.recipe).keys)) {}

  auto Run() -> void {
    Pair();
    if (adapters_.empty() || !findings_.empty()) {
      return;
    }
    for (const SectionKind section : {SectionKind::Step, SectionKind::Eval}) {
      Walk(section);
    }
  }

 private:
  /// The contents of a buffer.
  struct Held {
    enum class Kind : uint8_t { Other, Base, Down, Scaled, Sum };
    Kind kind = Kind::Other;
    /// Index in adapters_.
    size_t adapter = 0;
    /// The x of the product, as it was before it was gathered.
    BufferId x;
    /// The op that wrote it.
    size_t index = 0;
  };
  using Kind = Held::Kind;

  /// Finds A and B of each matrix that has one of them.
  auto Pair() -> void {
    std::map<std::string_view, ParameterId> by_name;
    for (const ParameterId id : plan_.parameters.ids()) {
      by_name.emplace(plan_.parameters[id].name, id);
    }
    std::map<std::string, AdapterMatrices> pairs;
    for (const auto& [name, id] : by_name) {
      if (const std::string weight = AdaptedBy(name); !weight.empty()) {
        AdapterMatrices& matrices = pairs[weight];
        (name.ends_with(UpSuffix) ? matrices.up : matrices.down) = id;
      }
    }
    for (auto& [weight, matrices] : pairs) {
      const auto found = by_name.find(weight);
      if (found == by_name.end() || !matrices.down.valid() || !matrices.up.valid()) {
        findings_.Add("adapter-pair"_rule, "an adapter of {} lacks {}", weight,
                      found == by_name.end() ? "that matrix"
                      : matrices.up.valid()  ? "A"
                                             : "B");
        continue;
      }
      matrices.weight = found->second;
      const Dims& base = plan_.parameters[matrices.weight].shape;
      const Dims& down = plan_.parameters[matrices.down].shape;
      const Dims& up = plan_.parameters[matrices.up].shape;
      const auto adapter = AdapterOf(sizes_, weight);
      if (base.size() != 2 || down.size() != 2 || up != Dims{base[0], down[0]} || down[1] != base[1] ||
          (!sizes_.match.empty() && (!adapter || adapter->rank != down[0]))) {
        findings_.Add("adapter-pair"_rule, "the adapter of {} is {} and {}, which the keys of [adapter] do not give it",
                      weight, ToText(down), ToText(up));
      }
      for (const ParameterId id : {matrices.weight, matrices.down, matrices.up}) {
        adapter_of_[id] = adapters_.size();
      }
      adapters_.push_back(matrices);
    }
    for (const auto& [name, id] : by_name) {
      if (AdaptedBy(name).empty() && AdapterOf(sizes_, name) && !adapter_of_.contains(id)) {
        findings_.Add("adapter-pair"_rule, "{} has no adapter, and the keys of [adapter] give it one", name);
      }
    }
  }

  auto At(ValueId id) -> Held& { return held_[plan_.values[id].buffer]; }
  auto XOf(ValueId id) const -> BufferId {
    const auto found = gathered_.find(plan_.values[id].buffer);
    return found == gathered_.end() ? plan_.values[id].buffer : found->second;
  }
  auto WeightName(size_t adapter) const -> const std::string& {
    return plan_.parameters[adapters_[adapter].weight].name;
  }

  auto Walk(SectionKind section) -> void {
    held_.clear();
    gathered_.clear();
    const std::vector<Op>& ops = plan_.section(section).ops;
    for (size_t i = 0; i < ops.size() && !findings_.full(); ++i) {
      if (ops[i].phase == Phase::Forward) {
        Follow(section, i, ops[i]);
      }
    }
    for (const auto& [buffer, held] : held_) {
      Leave(section, held);
    }
  }

  /// Reports a product that nothing was made of: called where its bytes become others, and at the end.
  auto Leave(SectionKind section, const Held& held) -> void {
    if (held.kind == Kind::Base) {
      findings_.AddOp(section, held.index, "adapter-product"_rule, "goes on without the adapter of {}",
                      WeightName(held.adapter));
    } else if (held.kind == Kind::Down || held.kind == Kind::Scaled) {
      findings_.AddOp(section, held.index, "adapter-product"_rule, "is not added to the product of {}",
                      WeightName(held.adapter));
    }
  }

  auto Put(SectionKind section, ValueId at, Held held) -> void {
    Held& there = At(at);
    if (there.kind != Kind::Other) {
      Leave(section, there);
    }
    there = held;
  }

  auto Follow(SectionKind section, size_t index, const Op& op) -> void {
    if (FactsOf(op).work == Work::Product && FollowProduct(section, index, op.body)) {
      return;
    }
    if (const double* factor = AttributeOf<double>(op.body, "factor"); factor != nullptr) {
      if (const ValueId x = ValueIn(op.body, "x"); At(x).kind != Kind::Other) {
        FollowScale(section, index, x, *factor);
        return;
      }
    }
    if (const auto moved = CollectiveOf(op);
        moved && plan_.values[moved->from].buffer != plan_.values[moved->to].buffer) {
      // A gathered x is that x; sums and gathers of products are these products.
      gathered_[plan_.values[moved->to].buffer] = XOf(moved->from);
      Held held = std::exchange(At(moved->from), {});
      held.index = index;
      Put(section, moved->to, held);
      return;
    }
    Reads(section, index);
  }

  /// Returns true if one of the matrices is of an adapter, or of a projection that has one.
  auto FollowProduct(SectionKind section, size_t index, const OpBody& product) -> bool {
    const AccessList accesses = AccessesOf(product);
    const Access& written = *std::ranges::find(accesses, "out", &Access::field);
    const ValueId a = ValueIn(product, "a");
    const ValueId out = written.value;
    const ParameterId id = plan_.values[ValueIn(product, "b")].role.parameter();
    const auto found = id.valid() ? adapter_of_.find(id) : adapter_of_.end();
    if (found == adapter_of_.end()) {
      return false;
    }
    const size_t adapter = found->second;
    const AdapterMatrices& matrices = adapters_[adapter];
    if (id == matrices.weight) {
      Put(section, out, {.kind = Kind::Base, .adapter = adapter, .x = XOf(a), .index = index});
    } else if (id == matrices.down) {
      Put(section, out, {.kind = Kind::Down, .adapter = adapter, .x = XOf(a), .index = index});
    } else {
      const Held low = std::exchange(At(a), {});
      const Held base = written.kills.valid() ? std::exchange(At(written.kills), {}) : Held{};
      const bool is_sound = low.kind == Kind::Scaled && low.adapter == adapter && base.kind == Kind::Base &&
                            base.adapter == adapter && low.x == base.x;
      if (!is_sound) {
        findings_.AddOp(section, index, "adapter-product"_rule,
                        "does not add the scaled product of A and an x to that of {} and the same x",
                        WeightName(adapter));
      }
      At(out) = {};
    }
    return true;
  }

  auto FollowScale(SectionKind section, size_t index, ValueId x, double factor) -> void {
    Held& held = At(x);
    const auto expected = AdapterOf(sizes_, WeightName(held.adapter));
    if (held.kind != Kind::Down) {
      findings_.AddOp(section, index, "adapter-scale"_rule, "scales what is no product of A, or was scaled before");
    } else if (expected && expected->scale != factor) {
      findings_.AddOp(section, index, "adapter-scale"_rule, "scales the adapter of {} by {}, and its keys make that {}",
                      WeightName(held.adapter), factor, expected->scale);
    }
    held.kind = Kind::Scaled;
    held.index = index;
  }

  /// Reports an op that takes a product of an adapted projection before its adapter was added, and forgets what others
  /// overwrite.
  auto Reads(SectionKind section, size_t index) -> void {
    for (const Access& access : findings_.AccessesOf(section, index)) {
      Held& held = At(access.value);
      if (access.kind == AccessKind::Read && held.kind == Kind::Base) {
        findings_.AddOp(section, index, "adapter-product"_rule, "takes a product of {} without its adapter",
                        WeightName(held.adapter));
      }
      if (access.kind != AccessKind::Read) {
        gathered_.erase(plan_.values[access.value].buffer);
        Put(section, access.value, {});
      }
    }
  }

  const Plan& plan_;
  Findings& findings_;
  AdapterSizes sizes_;
  std::vector<AdapterMatrices> adapters_;
  std::map<ParameterId, size_t> adapter_of_;
  std::map<BufferId, Held> held_;
  /// By buffer: that of which it has the whole.
  std::map<BufferId, BufferId> gathered_;
};

}  // namespace

auto VerifyAdapters(const Plan& plan, Findings& findings) -> void { AdapterVerifier(plan, findings).Run(); }

}  // namespace shardc
