#include "compiler/plan/plan.h"

#include <algorithm>
#include <numeric>

#include "compiler/base/devices.h"

namespace shardc {

Plan::Plan() = default;
Plan::Plan(const Plan& other) = default;
Plan::Plan(Plan&& other) noexcept = default;
Plan::~Plan() = default;
auto Plan::operator=(const Plan& other) -> Plan& = default;
auto Plan::operator=(Plan&& other) noexcept -> Plan& = default;
auto operator==(const Plan& a, const Plan& b) -> bool = default;

auto Plan::num_ops() const -> int64_t {
  int64_t num_ops = 0;
  for (const Section& section : sections) {
    num_ops += std::ssize(section.ops);
  }
  return num_ops;
}

auto Plan::Established(PassKind pass) const -> bool {
  return std::find(passes.begin(), passes.end(), pass) != passes.end();
}

auto PassesFor(Device device) -> std::vector<PassKind> {
  std::vector<PassKind> passes;
  for (int i = 0; i < NumPasses; ++i) {
    const auto pass = static_cast<PassKind>(i);
    if (pass != PassKind::Fuse || FactsOf(device).fuses_ops) {
      passes.push_back(pass);
    }
  }
  return passes;
}

auto IsSplit(Documents documents) -> bool {
  switch (documents) {
    case Documents::Stream: return false;
    case Documents::Split: return true;
  }
  CHECK(false, "documents {}", static_cast<int>(documents));
}

auto IsPacked(Pack pack) -> bool {
  switch (pack) {
    case Pack::Stream: return false;
    case Pack::BestFit: return true;
  }
  CHECK(false, "pack {}", static_cast<int>(pack));
}

auto Plan::OwnHead() const -> HeadId {
  for (const HeadId id : heads.ids()) {
    if (heads[id].is_own) {
      return id;
    }
  }
  return {};
}

auto Plan::FindScalar(ScalarRole role) const -> ScalarId {
  for (const ScalarId id : scalars.ids()) {
    if (scalars[id].role == role) {
      return id;
    }
  }
  return {};
}

auto Plan::ScalarOf(ScalarRole role) const -> ScalarId {
  const ScalarId id = FindScalar(role);
  CHECK(id.valid(), "no scalar has the role {}", ToText(role));
  return id;
}

auto ToText(const Seed& seed) -> std::string {
  const std::string_view adapter = seed.adapter.empty() ? "" : ", with an adapter";
  switch (seed.format) {
    case SeedFormat::Checkpoint: return fmt::format("step {} of run {}{}", seed.step, seed.run_id, adapter);
    case SeedFormat::HuggingFace: return fmt::format("{} of Hugging Face{}", seed.run_id, adapter);
  }
  CHECK(false, "format {}", static_cast<int>(seed.format));
}

auto Seed::Find(std::string_view name) const -> const SeedTensor* {
  const auto found =
      std::lower_bound(tensors.begin(), tensors.end(), name,
                       [](const SeedTensor& tensor, std::string_view other) { return tensor.name < other; });
  return found == tensors.end() || found->name != name ? nullptr : &*found;
}

namespace {

/// A row of optimizers that say what they keep.
struct StateRow {
  Optimizer optimizer;
  StateRole role;
  bool is_always_kept;
};
#define ALWAYS true
#define UNLESS_ZERO(key) false
#define STATE(Name, Role, role, kept, doc) StateRow{Optimizer::Name, StateRole::Role, kept},
constexpr std::array StateRows{
#include "schemas/optimizers.def"
};

}  // namespace

auto KeepsAlways(Optimizer optimizer, StateRole role) -> bool {
  return std::ranges::any_of(StateRows, [&](const StateRow& row) {
    return row.optimizer == optimizer && row.role == role && row.is_always_kept;
  });
}

auto MayKeep(Optimizer optimizer, StateRole role) -> bool {
  return std::ranges::any_of(StateRows,
                             [&](const StateRow& row) { return row.optimizer == optimizer && row.role == role; });
}

auto StateOf(SubVector& sub_vector, StateRole role) -> ValueId& {
  return role == StateRole::Parameter ? sub_vector.shard : sub_vector.moments[static_cast<size_t>(role) - 1];
}

auto StateOf(const SubVector& sub_vector, StateRole role) -> ValueId {
  return role == StateRole::Parameter ? sub_vector.shard : sub_vector.moments[static_cast<size_t>(role) - 1];
}

auto StateName(std::string_view parameter, StateRole role) -> std::string {
  return role == StateRole::Parameter ? std::string(parameter) : fmt::format("{} of {}", ToText(role), parameter);
}

auto StateTypeOf(const Plan& plan, const SubVector& sub_vector, StateRole role) -> DType {
  return role == StateRole::Parameter && !sub_vector.segments.empty()
             ? plan.parameters[sub_vector.segments.front().parameter].dtype
             : DType::F32;
}

auto ReservedBytes(const Plan& plan) -> Bytes {
  return Bytes{std::accumulate(plan.arena_bytes.begin(), plan.arena_bytes.end(), int64_t{0})};
}

auto SamplesPerStep(const Plan& plan) -> int64_t { return plan.run.tokens_per_step / plan.data.seq; }

auto VocabOf(const Plan& plan, HeadId head) -> int64_t {
  return head.valid() ? plan.heads[head].vocab : plan.data.vocab;
}

auto IsWhole(const SubVector& sub_vector, const Mesh& mesh) -> bool {
  return (CopyAxes(sub_vector, mesh) & AxesSharing(Shared::Matrices)) != AxisSet{};
}

auto NameOf(const Plan& plan, const SubVector& sub_vector) -> std::string {
  return plan.units[sub_vector.unit].name + (sub_vector.trainable ? "" : ".frozen") +
         (IsWhole(sub_vector, plan.mesh) ? ".replicated" : "");
}

auto OwnedSlice(const SubVector& sub_vector, const Mesh& mesh, int64_t rank) -> Interval {
  return OwnedSlice(sub_vector.length, mesh.size(sub_vector.axes), mesh.IndexIn(sub_vector.axes, rank));
}

auto CopyAxes(const SubVector& sub_vector, const Mesh& mesh) -> AxisSet {
  return Spread(mesh, AxisSet::All().Without(sub_vector.axes | sub_vector.cut));
}

namespace {

class AccessCollector : public IgnoreFields {
 public:
  explicit AccessCollector(AccessList* accesses) : accesses_(*accesses) {}

  auto In(std::string_view name, ValueId id) -> void { Add(name, id, AccessKind::Read); }
  auto Out(std::string_view name, ValueId id) -> void { Add(name, id, AccessKind::Write); }
  auto Over(std::string_view name, ValueId id, ValueId operand) -> void { Add(name, id, AccessKind::Write, operand); }
  auto Acc(std::string_view name, ValueId id, ValueId onto) -> void {
    Add(name, id, onto.valid() ? AccessKind::ReadWrite : AccessKind::Write, onto);
  }
  auto InOut(std::string_view name, ValueId id) -> void { Add(name, id, AccessKind::ReadWrite); }
  auto Scratch(std::string_view name, ValueId id) -> void {
    if (id.valid()) {
      Add(name, id, AccessKind::Write, {}, true);
    }
  }

 private:
  auto Add(std::string_view name, ValueId id, AccessKind kind, ValueId kills = {}, bool is_scratch = false) -> void {
    accesses_.push_back({.value = id, .kind = kind, .is_scratch = is_scratch, .kills = kills, .field = name});
  }

  AccessList& accesses_;
};

}  // namespace

auto AccessesOf(const OpBody& body) -> AccessList {
  AccessList accesses;
  VisitBody(body, [&](const auto& concrete) { VisitFields(concrete, AccessCollector(&accesses)); });
  return accesses;
}

namespace {

struct ReleasedBufferFinder : IgnoreFields {
  BufferId found;
  auto Whole(std::string_view, BufferId id) -> void { found = id; }
};

}  // namespace

auto ReleasedBufferOf(const OpBody& body) -> BufferId {
  ReleasedBufferFinder finder;
  VisitBody(body, [&](const auto& concrete) { VisitFields(concrete, finder); });
  return finder.found;
}

}  // namespace shardc
