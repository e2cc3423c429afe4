#include "runtime/core/check_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "compiler/plan/init_rule.h"
#include "compiler/plan/local_parameter.h"
#include "compiler/plan/state_index.h"
#include "runtime/control/rank_control.h"
#include "runtime/device/family.h"
#include "runtime/kernels/host/finite.h"

namespace shardc {

namespace {

/// The first tensor that is not finite on one rank.
struct FoundElement {
  /// Its number in the order; the greatest number if all tensors are finite.
  int64_t order = std::numeric_limits<int64_t>::max();
  int64_t element = 0;
  double value = 0;
};

/// Returns true if the device knows that all elements of a vector are finite, its padding included.
auto AreFiniteOnDevice(Binder& binder, ValueId vector) -> ErrorOr<bool> {
  const auto are_finite = PartsOf(FactsOf(binder.plan().device).family).are_finite;
  return are_finite == nullptr ? ErrorOr<bool>(false) : are_finite(vector, binder);
}

class StateSearch {
 public:
  explicit StateSearch(Binder& binder) : binder_(binder) {}

  /// Looks at one vector. Its tensors come in the order from `first_order` on.
  auto Look(const SubVector& sub_vector, ValueId vector, StateRole role, int64_t first_order) -> Status {
    ASSIGN_OR_RETURN(const auto are_finite, AreFiniteOnDevice(binder_, vector));
    if (are_finite) {
      return Success{};
    }
    const Plan& plan = binder_.plan();
    const View view = binder_.ViewOf(vector);
    for (const Segment& segment : sub_vector.segments) {
      const int64_t order = first_order + StateIndex(segment.parameter, role);
      const auto owned = OwnedSegmentOf(plan, sub_vector, segment, binder_.rank());
      if (!owned || order >= found_.order) {
        continue;
      }
      const int64_t element = SizeOf(view.dtype);
      const auto* const first = view.At<const std::byte>({}) + owned->in_slice.begin * element;
      const auto look = [&](const std::byte* elements, int64_t begin, int64_t bytes) -> Status {
        const auto bad = FindNonFinite(plan, view.dtype, elements, bytes / element);
        if (bad && order < found_.order) {
          found_ = {
              .order = order,
              .element = owned->elements.InMatrix(owned->elements.elements.begin + begin / element + bad->element),
              .value = bad->value};
        }
        return Success{};
      };
      Queue& queue = binder_.device().queue(Stream::Compute);
      RETURN_IF_ERROR(queue.ReadInPieces(first, owned->in_slice.size() * element, scratch_, look));
    }
    return Success{};
  }

  auto found() const -> const FoundElement& { return found_; }

 private:
  Binder& binder_;
  HostScratch scratch_;
  FoundElement found_;
};

}  // namespace

auto FindBadState(Binder& binder, std::span<const StateRole> roles) -> ErrorOr<std::optional<BadState>> {
  const Plan& plan = binder.plan();
  const int64_t first_copy = StateIndex(ParameterId{plan.parameters.size()}, StateRole{});
  StateSearch search(binder);
  for (const SubVector& sub_vector : plan.sub_vectors) {
    for (const StateRole role : roles) {
      if (HasRole(sub_vector, role)) {
        RETURN_IF_ERROR(search.Look(sub_vector, StateOf(sub_vector, role), role, 0));
      }
    }
    if (sub_vector.compute_copy.valid()) {
      RETURN_IF_ERROR(search.Look(sub_vector, sub_vector.compute_copy, StateRole::Parameter, first_copy));
    }
  }
  ASSIGN_OR_RETURN(const auto all, binder.control().GatherValues(AxisSet::All(), search.found()));
  const auto first = std::ranges::min_element(all, {}, &FoundElement::order);
  if (first->order == FoundElement{}.order) {
    return std::optional<BadState>();
  }
  const bool is_copy = first->order >= first_copy;
  const auto [parameter, role] = StateAt(first->order - (is_copy ? first_copy : 0));
  return std::optional(BadState{.parameter = parameter,
                                .role = role,
                                .is_copy = is_copy,
                                .rank = first - all.begin(),
                                .element = first->element,
                                .value = first->value});
}

auto ToText(const Plan& plan, const BadState& bad) -> std::string {
  return fmt::format("{}{} is not finite: element {} is {}, on rank {}", bad.is_copy ? "what is computed with of " : "",
                     StateName(plan.parameters[bad.parameter].name, bad.role), bad.element,
                     // The sign of a NaN says nothing.
                     std::isnan(bad.value) ? "nan" : fmt::format("{}", bad.value), bad.rank);
}

auto CheckLoadedState(Binder& binder, std::span<const StateRole> roles, const std::string& path) -> Status {
  ASSIGN_OR_RETURN(const auto bad, FindBadState(binder, roles));
  if (bad) {
    return Fail(ExitCode::Checkpoint, "{}: {}; use an older checkpoint: move this one away", path,
                ToText(binder.plan(), *bad));
  }
  return Success{};
}

auto CheckFirstState(Binder& binder) -> Status {
  const Plan& plan = binder.plan();
  ASSIGN_OR_RETURN(const auto bad, FindBadState(binder, std::array{StateRole::Parameter}));
  if (!bad) {
    return Success{};
  }
  const Parameter& parameter = plan.parameters[bad->parameter];
  const std::string text = ToText(plan, *bad);
  if (const auto tensor = LoadedTensorOf(parameter)) {
    const SeedTensor* const loaded = plan.seed.Find(*tensor);
    FAIL_IF(loaded != nullptr && std::isinf(bad->value) && SizeOf(loaded->dtype) > SizeOf(parameter.dtype),
            ExitCode::Checkpoint,
            "{}: {}; it is loaded from tensor {} in {}, and a value beyond {} becomes infinite: --set "
            "precision.master=fp32",
            plan.seed.path, text, *tensor, ToText(loaded->dtype), ToText(parameter.dtype));
    return Fail(ExitCode::Checkpoint, "{}: {}; it is loaded from tensor {}", plan.seed.path, text, *tensor);
  }
  return Fail(ExitCode::RecipeRejected, "{}; its init rule is {}{}", text, parameter.init,
              plan.seed.is_set() ? ", which may read from the seed " + plan.seed.path : "");
}

}  // namespace shardc
