// Roles of values: what a value says that it is agrees with the tables. A parameter has the shape, and the type, that
// ranks compute with; its gradient lies in its segment of a vector of gradients; slices and gathered vectors are as
// long as their sub-vector has it, and the slices that a sub-vector names are its own.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "compiler/plan/local_parameter.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

class RoleVerifier {
 public:
  RoleVerifier(const Plan& plan, Findings& findings)
      : plan_(plan),
        findings_(findings),
        is_sharded_(plan.Established(PassKind::Shard)),
        homes_(static_cast<size_t>(plan.parameters.size())),
        wholes_(static_cast<size_t>(plan.sub_vectors.size())) {
    for (const SubVectorId id : plan.sub_vectors.ids()) {
      for (const Segment& segment : plan.sub_vectors[id].segments) {
        homes_[static_cast<size_t>(segment.parameter.index)] = {id, segment.begin};
      }
    }
    for (const ValueId id : plan.values.ids()) {
      if (const SubVectorId of = plan.values[id].role.sub_vector(); of.valid() && IsWholeGradient(id, of)) {
        wholes_[static_cast<size_t>(of.index)].push_back(id);
        wholes_in_[plan.values[id].buffer].push_back(id);
      }
    }
    const bool is_placed = plan.Established(PassKind::Place);
    for (const shardc::Parameter& parameter : plan.parameters) {
      shapes_.push_back(is_placed ? LocalShape(parameter, plan.mesh) : parameter.shape);
    }
    outside_backward_.resize(static_cast<size_t>(plan.values.size()));
    ForEachOp(plan, [&](SectionKind section, size_t index, const Op& op) {
      if (op.phase != Phase::Backward) {
        for (const Access& access : findings.AccessesOf(section, index)) {
          if (access.kind != AccessKind::Read) {
            outside_backward_[static_cast<size_t>(access.value.index)] = true;
          }
        }
      }
    });
  }

  auto Values() -> void {
    for (const ValueId id : plan_.values.ids()) {
      const ValueRole role = plan_.values[id].role;
      switch (role.kind()) {
        case RoleKind::Other: Other(id); break;
        case RoleKind::Parameter: Parameter(id, role.parameter()); break;
        case RoleKind::Gradient:
          if (role.gradient_of().valid()) {
            Gradient(id, role.gradient_of());
          } else {
            Other(id);
            GradientOfNone(id);
          }
          break;
        case RoleKind::Vector: Vector(id, role.sub_vector()); break;
      }
    }
  }

  auto Slices() -> void {
    for (const SubVectorId id : plan_.sub_vectors.ids()) {
      const SubVector& own = plan_.sub_vectors[id];
      ForEachSlice(own, [&](ValueId slice) {
        if (slice.valid() && plan_.values[slice].role != ValueRole::Of(id)) {
          findings_.Add("slice-role"_rule, "{} names {}, whose role is another", NameOf(plan_, own), Name(slice));
        }
      });
    }
  }

 private:
  struct Home {
    SubVectorId sub_vector;
    int64_t begin = 0;
  };

  auto Name(ValueId id) const -> std::string { return findings_.Name(id); }
  auto HomeOf(ParameterId id) const -> const Home& { return homes_[static_cast<size_t>(id.index)]; }
  auto IsWholeGradient(ValueId id, SubVectorId of) const -> bool {
    const Value& value = plan_.values[id];
    return plan_.buffers[value.buffer].category == Category::Gradients && value.dtype == DType::F32 &&
           value.num_elements() == plan_.sub_vectors[of].length;
  }
  auto ExpectType(ValueId id, ParameterId of, std::string_view what, std::optional<DType> dtype) -> void {
    const Value& value = plan_.values[id];
    const shardc::Parameter& parameter = plan_.parameters[of];
    const Dims& shape = shapes_[static_cast<size_t>(of.index)];
    if (value.shape != shape || (dtype && value.dtype != *dtype)) {
      findings_.Add("value-role"_rule, "{} is {}{}, as {} {} it is {}{}", Name(id), ToText(value.dtype),
                    ToText(value.shape), what, parameter.name, ToText(dtype.value_or(value.dtype)), ToText(shape));
    }
  }

  auto Parameter(ValueId id, ParameterId of) -> void {
    if (plan_.buffers[plan_.values[id].buffer].category == Category::Gradients) {
      findings_.Add("value-role"_rule, "{} lies among gradients, and says that it is the parameter {}", Name(id),
                    plan_.parameters[of].name);
      return;
    }
    const SubVectorId home = HomeOf(of).sub_vector;
    ExpectType(id, of, "parameter",
               is_sharded_ ? std::optional(plan_.sub_vectors[home].compute) : std::optional<DType>());
  }

  /// Checks that a value with the bytes and the shape of a parameter's gradient has that role.
  auto Other(ValueId id) -> void {
    const Value& value = plan_.values[id];
    if (plan_.buffers[value.buffer].category != Category::Gradients) {
      return;
    }
    const auto wholes = wholes_in_.find(value.buffer);
    if (wholes == wholes_in_.end() || value.dtype != DType::F32 || !value.offset.is_constant() ||
        !findings_.Spend(wholes->second.size())) {
      return;
    }
    for (const ValueId whole : wholes->second) {
      const ParameterId there = GradientAt(whole, value.offset.base);
      if (there.valid() && value.shape == LocalShape(plan_.parameters[there], plan_.mesh)) {
        findings_.Add("value-role"_rule, "{} lies where the gradient of {} does, and does not say that it is that",
                      Name(id), plan_.parameters[there].name);
        return;
      }
    }
  }

  /// Returns the parameter whose gradient begins at this byte of the buffer of a whole gradient; an invalid id if none
  /// begins there.
  auto GradientAt(ValueId whole, int64_t byte) const -> ParameterId {
    // Segments lie one after another, as VerifySegments shows.
    const std::vector<Segment>& segments = plan_.sub_vectors[plan_.values[whole].role.sub_vector()].segments;
    const int64_t element = (byte - plan_.values[whole].offset.base) / SizeOf(DType::F32);
    const auto found = std::ranges::lower_bound(segments, element, {}, &Segment::begin);
    return found != segments.end() && found->begin == element ? found->parameter : ParameterId{};
  }

  /// Checks that only the backward writes the gradient of an activation.
  auto GradientOfNone(ValueId id) -> void {
    if (outside_backward_[static_cast<size_t>(id.index)] &&
        plan_.buffers[plan_.values[id].buffer].category != Category::Gradients) {
      findings_.Add("value-role"_rule,
                    "{} says that it is a gradient, and an op writes it that is none of the backward", Name(id));
    }
  }

  auto Gradient(ValueId id, ParameterId of) -> void {
    ExpectType(id, of, "the gradient of", DType::F32);
    const Value& value = plan_.values[id];
    const auto lies_in = [&](ValueId whole) {
      RankExpr offset = plan_.values[whole].offset;
      offset.base += HomeOf(of).begin * SizeOf(DType::F32);
      return plan_.values[whole].buffer == value.buffer && offset == value.offset;
    };
    if (is_sharded_ && std::ranges::none_of(wholes_[static_cast<size_t>(HomeOf(of).sub_vector.index)], lies_in)) {
      findings_.Add("value-role"_rule, "{} is the gradient of {}, and lies elsewhere than in its segment", Name(id),
                    plan_.parameters[of].name);
    }
  }

  auto Vector(ValueId id, SubVectorId of) -> void {
    const SubVector& own = plan_.sub_vectors[of];
    const int64_t elements = plan_.values[id].num_elements();
    if (elements != own.length && elements != own.length / plan_.mesh.size(own.axes) &&
        elements != own.length / plan_.mesh.size(Axis::DpInner)) {
      findings_.Add("value-role"_rule, "{} has {} elements, and is neither all of {}, which has {}, nor a slice of it",
                    Name(id), elements, NameOf(plan_, own), own.length);
    }
  }

  const Plan& plan_;
  Findings& findings_;
  bool is_sharded_;
  /// By parameter: where its segment is, and the shape that ranks compute with.
  std::vector<Home> homes_;
  std::vector<Dims> shapes_;
  /// By sub-vector: the vectors of its whole gradients.
  std::vector<std::vector<ValueId>> wholes_;
  /// By buffer: the whole gradients there.
  std::unordered_map<BufferId, std::vector<ValueId>> wholes_in_;
  /// By value: true if an op outside the backward writes it.
  std::vector<bool> outside_backward_;
};

}  // namespace

auto VerifyRoles(const Plan& plan, Findings& findings) -> void {
  RoleVerifier verifier(plan, findings);
  verifier.Values();
  verifier.Slices();
}

}  // namespace shardc
