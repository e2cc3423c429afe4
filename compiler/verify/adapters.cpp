// Low-rank adapters: what is added beside a projection whose plan has an adapter for it. In the forward of a step and
// of an evaluation the product of B and of the scaled product of A is added to that of the projection, of the same x,
// before anything else takes it; each product of A has its own of B, and where projections share A one of each. What is
// computed again and the gradients follow from the forward (backward.cpp), that a frozen matrix keeps its values from
// its sub-vector (state.cpp).
#include <cmath>
#include <map>

#include "compiler/keys/adapters.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

/// The matrices that belong together. Adapters may share A.
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
  /// A buffer, and how often it had been written.
  using Contents = std::pair<BufferId, int64_t>;

  /// The part of adapters in the contents of a buffer.
  struct Held {
    enum class Kind : uint8_t { Other, Base, Down, Scaled };
    Kind kind = Kind::Other;
    /// Indices in adapters_: of a base its own, of a product of A those that it was not added to yet.
    std::vector<size_t> adapters;
    /// The x of the product, as it was before it was gathered.
    Contents x;
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
    const auto find = [&](std::string_view name) {
      const auto found = by_name.find(name);
      return found == by_name.end() ? ParameterId() : found->second;
    };
    for (const auto& [name, id] : by_name) {
      if (!name.ends_with(UpSuffix)) {
        continue;
      }
      const std::string weight = AdaptedBy(name);
      const AdapterMatrices matrices{.weight = find(weight), .down = find(DownOf(sizes_, weight)), .up = id};
      if (!matrices.weight.valid() || !matrices.down.valid()) {
        findings_.Add("adapter-pair"_rule, "an adapter of {} lacks {}", weight,
                      matrices.weight.valid() ? "A" : "that matrix");
        continue;
      }
      const Dims& base = plan_.parameters[matrices.weight].shape;
      const Dims& down = plan_.parameters[matrices.down].shape;
      const Dims& up = plan_.parameters[matrices.up].shape;
      const auto adapter = AdapterOf(sizes_, weight);
      if (base.size() != 2 || down.size() != 2 || up != Dims{base[0], down[0]} || down[1] != base[1] ||
          (!sizes_.match.empty() && (!adapter || adapter->rank != down[0]))) {
        findings_.Add("adapter-pair"_rule, "the adapter of {} is {} and {}, which the keys of [adapter] do not give it",
                      weight, ToText(down), ToText(up));
      }
      for (const ParameterId matrix : {matrices.weight, matrices.down, matrices.up}) {
        adapters_of_[matrix].push_back(adapters_.size());
      }
      adapters_.push_back(matrices);
    }
    for (const auto& [name, id] : by_name) {
      if (adapters_of_.contains(id)) {
        continue;
      }
      if (name.ends_with(DownSuffix)) {
        findings_.Add("adapter-pair"_rule, "an adapter of {} lacks B", AdaptedBy(name));
      } else if (AdaptedBy(name).empty() && AdapterOf(sizes_, name)) {
        findings_.Add("adapter-pair"_rule, "{} has no adapter, and the keys of [adapter] give it one", name);
      }
    }
  }

  auto At(ValueId id) -> Held& { return held_[plan_.values[id].buffer]; }
  auto XOf(ValueId id) -> Contents {
    const BufferId buffer = plan_.values[id].buffer;
    const auto found = gathered_.find(buffer);
    return found == gathered_.end() ? Contents{buffer, writes_[buffer]} : found->second;
  }
  auto WeightName(size_t adapter) const -> const std::string& {
    return plan_.parameters[adapters_[adapter].weight].name;
  }

  auto Walk(SectionKind section) -> void {
    held_.clear();
    gathered_.clear();
    writes_.clear();
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
    for (const size_t adapter : held.adapters) {
      if (held.kind == Kind::Base) {
        findings_.AddOp(section, held.index, "adapter-product"_rule, "goes on without the adapter of {}",
                        WeightName(adapter));
      } else {
        findings_.AddOp(section, held.index, "adapter-product"_rule, "is not added to the product of {}",
                        WeightName(adapter));
      }
    }
  }

  auto Put(SectionKind section, ValueId at, Held held) -> void {
    ++writes_[plan_.values[at].buffer];
    Leave(section, std::exchange(At(at), std::move(held)));
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
      gathered_.insert_or_assign(plan_.values[moved->to].buffer, XOf(moved->from));
      Held held = std::exchange(At(moved->from), {});
      held.index = index;
      Put(section, moved->to, std::move(held));
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
    const auto found = id.valid() ? adapters_of_.find(id) : adapters_of_.end();
    if (found == adapters_of_.end()) {
      return false;
    }
    const size_t adapter = found->second.front();
    const AdapterMatrices& matrices = adapters_[adapter];
    if (id != matrices.up) {
      const Kind kind = id == matrices.weight ? Kind::Base : Kind::Down;
      Put(section, out, {.kind = kind, .adapters = found->second, .x = XOf(a), .index = index});
    } else {
      Held& low = At(a);
      const Held base = written.kills.valid() ? std::exchange(At(written.kills), {}) : Held{};
      const bool is_sound = low.kind == Kind::Scaled && std::erase(low.adapters, adapter) == 1 &&
                            base.kind == Kind::Base && base.adapters.front() == adapter && low.x == base.x;
      if (low.adapters.empty() || !is_sound) {
        low = {};
      }
      if (!is_sound) {
        findings_.AddOp(section, index, "adapter-product"_rule,
                        "does not add the scaled product of A and an x to that of {} and the same x",
                        WeightName(adapter));
      }
      Put(section, out, {});
    }
    return true;
  }

  auto FollowScale(SectionKind section, size_t index, ValueId x, double factor) -> void {
    Held& held = At(x);
    if (held.kind != Kind::Down) {
      findings_.AddOp(section, index, "adapter-scale"_rule, "scales what is no product of A, or was scaled before");
    }
    for (const size_t adapter : held.adapters) {
      const auto expected = AdapterOf(sizes_, WeightName(adapter));
      if (held.kind == Kind::Down && expected && expected->scale != factor) {
        findings_.AddOp(section, index, "adapter-scale"_rule,
                        "scales the adapter of {} by {}, and its keys make that {}", WeightName(adapter), factor,
                        expected->scale);
      }
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
                        WeightName(held.adapters.front()));
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
  /// Indices in adapters_, by each of their matrices.
  std::map<ParameterId, std::vector<size_t>> adapters_of_;
  std::map<BufferId, Held> held_;
  /// By buffer: that of which it has the whole.
  std::map<BufferId, Contents> gathered_;
  std::map<BufferId, int64_t> writes_;
};

}  // namespace

auto VerifyAdapters(const Plan& plan, Findings& findings) -> void { AdapterVerifier(plan, findings).Run(); }

}  // namespace shardc
