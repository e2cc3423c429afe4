#include "runtime/core/find_nonfinite.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <vector>

#include "compiler/ops/op_facts.h"
#include "compiler/plan/local_parameter.h"
#include "compiler/plan/loops.h"
#include "runtime/comm/communicator.h"
#include "runtime/control/rank_control.h"
#include "runtime/core/check_state.h"
#include "runtime/core/program.h"
#include "runtime/kernels/host/finite.h"

namespace shardc {

namespace {

/// The first result that was not finite on one rank.
struct BadResult {
  /// Its number in the order in which ops run; the greatest number if all results are finite.
  int64_t order = std::numeric_limits<int64_t>::max();
  /// Its index in the section.
  int64_t op = -1;
  int64_t repeat = 0;
  int32_t value = -1;
  /// If the value holds many parameters: which one it was.
  int32_t parameter = -1;
};

/// The first bad result of the forward, and that of all other ops.
using BadResults = std::array<BadResult, 2>;

/// Returns true for ops that change the state or the scalars, or only make numbers for these, and for ops whose results
/// may be NaN without a fault.
auto IsLeftOut(const Op& op) -> bool {
  const OpFacts& facts = FactsOf(op);
  return facts.update != UpdatePart::None || !ScalarsOf(op).empty() || facts.non_finite == NonFiniteResult::NaN;
}

struct ResultsOf : IgnoreFields {
  std::vector<ValueId> values;
  auto Out(std::string_view, ValueId id) -> void { values.push_back(id); }
  auto Over(std::string_view, ValueId id, ValueId) -> void { values.push_back(id); }
  auto Acc(std::string_view, ValueId id, ValueId) -> void { values.push_back(id); }
};

/// Returns the values that are minus infinity on a rank without columns of the vocabulary: log_sum_exp, and gathers of
/// it.
auto MayBeMinusInfinity(const Plan& plan) -> std::set<ValueId> {
  std::set<ValueId> values;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    if (FactsOf(op).non_finite == NonFiniteResult::MinusInfinity) {
      for (const Access& access : AccessesOf(op.body)) {
        if (access.kind != AccessKind::Read) {
          values.insert(access.value);
        }
      }
    }
    if (const auto gather = CollectiveOf(op); gather && values.contains(gather->from)) {
      values.insert(gather->to);
    }
  }
  return values;
}

class Watch {
 public:
  explicit Watch(RankBinder& binder) : binder_(binder), may_be_minus_infinity_(MayBeMinusInfinity(binder.plan())) {}

  /// Wraps the kernel of an op of the step: it looks at the op's results.
  auto Wrap(size_t index, Kernel kernel) -> Kernel;
  auto bad() const -> const BadResults& { return bad_; }

 private:
  struct Result {
    ValueId id;
    View view;
    bool may_be_minus_infinity = false;
  };
  struct WatchedOp {
    /// In the section.
    size_t index = 0;
    bool is_forward = false;
    /// The queue on which its results are read.
    Queue* queue = nullptr;
    std::vector<Result> results;
  };

  auto Look(const WatchedOp& op, const Moment& moment) -> Status;
  /// Looks at elements of a result, which are in this interval of it. Returns true if one is not finite.
  auto IsBad(const WatchedOp& op, const Result& result, const Moment& moment, const Interval& elements)
      -> ErrorOr<bool>;
  /// Returns the elements of each parameter in a value that is a vector of a unit's or of several units' gradients, in
  /// the order of parameters.
  auto ParametersIn(ValueId value) const -> std::vector<std::pair<ParameterId, Interval>>;

  RankBinder& binder_;
  std::set<ValueId> may_be_minus_infinity_;
  HostScratch scratch_;
  int64_t order_ = 0;
  BadResults bad_;
};

auto Watch::Wrap(size_t index, Kernel kernel) -> Kernel {
  const Op& op = binder_.plan().section(SectionKind::Step).ops[index];
  if (IsLeftOut(op)) {
    return [](const Moment&) -> Status { return Success{}; };
  }
  ResultsOf fields;
  VisitBody(op.body, [&](const auto& body) { VisitFields(body, fields); });
  std::vector<Result> results;
  for (const ValueId id : fields.values) {
    // Sums in f64 outside of the forward are those of the norm and of the loss that is reported.
    if (const View view = binder_.ViewOf(id); view.dtype != DType::F64 || op.phase == Phase::Forward) {
      results.push_back({id, view, may_be_minus_infinity_.contains(id)});
    }
  }
  WatchedOp watched{.index = index,
                    .is_forward = op.phase == Phase::Forward,
                    .queue = &binder_.queue(),
                    .results = std::move(results)};
  return [this, watched = std::move(watched), kernel = std::move(kernel)](const Moment& moment) -> Status {
    RETURN_IF_ERROR(kernel(moment));
    return Look(watched, moment);
  };
}

auto Watch::Look(const WatchedOp& op, const Moment& moment) -> Status {
  ++order_;
  BadResult& bad_result = bad_[op.is_forward ? 0 : 1];
  if (bad_result.op >= 0) {
    return Success{};
  }
  for (const Result& result : op.results) {
    ASSIGN_OR_RETURN(const auto is_bad, IsBad(op, result, moment, {0, result.view.num_elements()}));
    if (!is_bad) {
      continue;
    }
    bad_result = {
        .order = order_, .op = static_cast<int64_t>(op.index), .repeat = moment.repeat, .value = result.id.index};
    for (const auto& [parameter, elements] : ParametersIn(result.id)) {
      ASSIGN_OR_RETURN(const auto is_of_it, IsBad(op, result, moment, elements));
      if (is_of_it) {
        bad_result.parameter = parameter.index;
        break;
      }
    }
    break;
  }
  return Success{};
}

auto Watch::IsBad(const WatchedOp& op, const Result& result, const Moment& moment, const Interval& elements)
    -> ErrorOr<bool> {
  const DType dtype = result.view.dtype;
  const int64_t element = SizeOf(dtype);
  bool is_bad = false;
  const auto look = [&](const std::byte* piece, int64_t, int64_t bytes) -> Status {
    is_bad = is_bad || (result.may_be_minus_infinity ? FindNonFiniteButMinusInfinity(dtype, piece, bytes / element)
                                                     : FindNonFinite(binder_.plan(), dtype, piece, bytes / element));
    return Success{};
  };
  const auto* const first = result.view.At<const std::byte>(moment) + elements.begin * element;
  RETURN_IF_ERROR(op.queue->ReadInPieces(first, elements.size() * element, scratch_, look));
  return is_bad;
}

auto Watch::ParametersIn(ValueId id) const -> std::vector<std::pair<ParameterId, Interval>> {
  const Plan& plan = binder_.plan();
  const Value& value = plan.values[id];
  std::vector<std::pair<ParameterId, Interval>> found;
  for (const SubVectorId of : plan.sub_vectors.ids()) {
    const SubVector& sub_vector = plan.sub_vectors[of];
    const bool is_of_it = value.role == ValueRole::Of(of);
    if (is_of_it && value.num_elements() == sub_vector.length) {
      for (const Segment& segment : sub_vector.segments) {
        found.emplace_back(segment.parameter, Interval{segment.begin, segment.end});
      }
      continue;
    }
    // The slice that this rank owns, alone or beside others.
    int64_t begin = 0;
    int64_t length = OwnedSlice(sub_vector, plan.mesh, binder_.rank()).size();
    if (!is_of_it || value.num_elements() != length) {
      if (!sub_vector.gradient.valid() || plan.values[sub_vector.gradient].buffer != value.buffer) {
        continue;
      }
      const Value& gradient = plan.values[sub_vector.gradient];
      begin = (gradient.offset.base - value.offset.base) / SizeOf(value.dtype);
      length = gradient.num_elements();
    }
    if (begin < 0 || begin + length > value.num_elements()) {
      continue;
    }
    for (const OwnedSegment& owned : OwnedSegments(plan, of, binder_.rank())) {
      found.emplace_back(owned.parameter, Interval{begin + owned.in_slice.begin, begin + owned.in_slice.end});
    }
  }
  std::ranges::sort(found, {}, &std::pair<ParameterId, Interval>::first);
  return found;
}

/// Returns a name of the value that users know.
auto NameOfResult(const Plan& plan, const BadResult& bad) -> std::string {
  const Op& op = plan.section(SectionKind::Step).ops[static_cast<size_t>(bad.op)];
  if (bad.parameter >= 0) {
    const std::string& name = plan.parameters[ParameterId{bad.parameter}].name;
    return FactsOf(op).collective == CollectiveKind::AllGather ? name : "the gradient of " + name;
  }
  const Value& value = plan.values[ValueId{bad.value}];
  if (const ParameterId of = value.role.gradient_of(); of.valid()) {
    return "the gradient of " + plan.parameters[of].name;
  }
  return value.role.kind() == RoleKind::Gradient ? "the gradient " + value.name : value.name;
}

/// Returns true if the op is in a loop.
auto IsInLoop(const std::vector<Op>& ops, int64_t index) -> bool {
  LoopTracker loops;
  for (int64_t i = 0; i < index; ++i) {
    loops.Enter(ops[static_cast<size_t>(i)]);
  }
  return loops.in_loop();
}

auto TextOf(const Plan& plan, const BadResult& bad, bool is_forward, int64_t rank) -> std::string {
  const std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
  const Op& op = ops[static_cast<size_t>(bad.op)];
  const std::string block = op.layer >= 0 ? fmt::format(" of block {}", op.layer) : "";
  const std::string microbatch = IsInLoop(ops, bad.op) ? fmt::format(", microbatch {}", bad.repeat) : "";
  return fmt::format(
      "{} is not finite: {}{} made it first (op {} of the step, in {}{}, rank {}); parameters and optimizer state are "
      "finite{}",
      NameOfResult(plan, bad), ToText(op.kind()), block, bad.op, is_forward ? "forward" : "backward", microbatch, rank,
      is_forward ? "" : ", and so is the forward");
}

}  // namespace

auto FindNonFiniteCause(RankBinder& binder, const Execution& execution, int64_t step) -> ErrorOr<NonFiniteCause> {
  const Plan& plan = binder.plan();
  ASSIGN_OR_RETURN(const auto state, FindBadState(binder, StateRoles));
  if (state) {
    return NonFiniteCause{.text = ToText(plan, *state), .is_state = true};
  }
  Watch watch(binder);
  Execution watched = execution;
  // Results are compared by the order in which ops run.
  watched.order.reset();
  watched.wrap = [&](SectionKind section, size_t index, Kernel kernel) -> Kernel {
    return watch.Wrap(index, execution.wrap ? execution.wrap(section, index, std::move(kernel)) : std::move(kernel));
  };
  // The ops that are left out send nothing, so that this is not what the plan says of a step.
  const TrafficTable before = binder.communicator().traffic();
  RETURN_IF_ERROR(Program(SectionKind::Step, binder, watched).Run(step));
  binder.communicator().ForgetTrafficSince(before);
  binder.ForgetRun(SectionKind::Step);

  ASSIGN_OR_RETURN(const auto all, binder.control().GatherValues(AxisSet::All(), watch.bad()));
  for (const size_t part : {0, 1}) {
    const auto first = std::ranges::min_element(all, {}, [&](const BadResults& bad) { return bad[part].order; });
    if ((*first)[part].op >= 0) {
      return NonFiniteCause{.text = TextOf(plan, (*first)[part], part == 0, first - all.begin()), .is_state = false};
    }
  }
  return NonFiniteCause{.text =
                            "a gradient is not finite, and was finite when the step was run once more: the same "
                            "bits are due, so look at this machine's memory and processor",
                        .is_state = false};
}

}  // namespace shardc
